"""Models that libraries make by name: in which mode they begin, what in them depends on it."""

from __future__ import annotations

import re

VISION = re.compile(r"^torchvision\.models\.(?:\w+\.)?[a-z]\w*$")
NO_MODEL = frozenset({"list_models", "get_weight", "get_model_weights", "get_model_builder"})
# families of torchvision by what their layers do in training
NORMALISED = re.compile(
    r"^(?:wide_)?resn[ex]|^densenet|^mobilenet|^efficientnet|^googlenet|^inception|^shufflenet"
    r"|^mnasnet|^regnet|^vgg\d+_bn$|^r3d|^mc3|^r2plus1d|^deeplab|^fcn|^lraspp"
)
DROPPING = re.compile(r"^alexnet|^vgg|^squeezenet|^mobilenet|^efficientnet|^googlenet|^inception")
PRETRAINED = re.compile(r"^transformers\.(?:models\.\w+\.)?\w*(?:Model|For\w+)\.from_pretrained$")
# families of Transformers whose configurations have a dropout of 0.1 as they come
WITH_DROPOUT = re.compile(r"bert|gpt2|gpt-2|electra|t5|bart|xlnet|xlm|mpnet|marian|opus-mt|pegasus")


def makes_model(name: str) -> bool:
    """Tell whether a function of that dotted name makes a model, which begins in training mode."""
    if name == "timm.create_model":
        return True
    return bool(VISION.match(name)) and name.rsplit(".", 1)[-1] not in NO_MODEL


def begins_evaluating(name: str) -> bool:
    """Tell whether a function of that dotted name gives a model in evaluation mode."""
    return bool(PRETRAINED.match(name))


def mode_dependent_kinds(name: str, wanted: object = None) -> list[str]:
    """Return the kinds of layers with two modes in what a function of that name makes.

    `wanted` is the text that it is given, if any: the name of an architecture or checkpoint.
    """
    text = wanted if isinstance(wanted, str) else ""
    if PRETRAINED.match(name):
        families = f"{name.split('.')[-2]} {text}".lower()
        return ["Dropout"] if WITH_DROPOUT.search(families) else []
    if name == "timm.create_model":
        last = text
    elif VISION.match(name):
        last = name.rsplit(".", 1)[-1]
    else:
        return []
    found = ["BatchNorm2d"] if NORMALISED.match(last) else []
    return found + (["Dropout"] if DROPPING.match(last) else [])
