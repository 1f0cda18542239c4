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


def makes_model(name: str) -> bool:
    """Tell whether a function of that dotted name makes a model, which begins in training mode."""
    if name == "timm.create_model":
        return True
    return bool(VISION.match(name)) and name.rsplit(".", 1)[-1] not in NO_MODEL


def mode_dependent_kinds(name: str) -> list[str]:
    """Return the kinds of layers with two modes in what a function of that name makes."""
    if not VISION.match(name):
        return []
    last = name.rsplit(".", 1)[-1]
    found = ["BatchNorm2d"] if NORMALISED.match(last) else []
    return found + (["Dropout"] if DROPPING.match(last) else [])
