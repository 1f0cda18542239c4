"""Models of torchvision: the images that they take, and how many outputs they have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.iteration import layers_of
from traindx.analysis.program.execution.values import Known, Result, Value
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.shapes.values import Mismatch, Shape, ShapedTensor
from traindx.analysis.program.training.layers import layer_kind, setting

if TYPE_CHECKING:
    from traindx.analysis.program.training.facts.tensor_shapes import TensorShapes

CLASSIFIER = re.compile(
    r"^torchvision\.models\.(?:\w+\.)?(?:(?:wide_)?resnet\d|resnext|densenet|mobilenet|vgg|alexnet"
    r"|efficientnet|shufflenet|mnasnet|regnet|convnext|swin|vit_|squeezenet)\w*$"
)
HEADS = ("fc", "classifier", "head", "heads")
STEMS = ("conv1", "features", "stem", "conv_proj", "patch_embed")  # what takes the image
CLASSES = 1000  # of ImageNet
COLOURS = 3


def zoo_output(model: Value | None, args: list[object], shapes: TensorShapes) -> object | None:
    """Return what a classifier of torchvision gives for images; None where a value is none."""
    if not isinstance(model, Result) or not CLASSIFIER.match(model.maker):
        return None
    image = args[0] if args else None
    rows: Dim = shapes.symbols.new()
    if isinstance(image, ShapedTensor) and not image.shape.is_open:
        _check(model, image.shape)
        rows = image.shape.sizes[0]
    count = _outputs(model, shapes)
    return ShapedTensor() if count is None else ShapedTensor(Shape((rows, count)))


def _check(model: Result, shape: Shape) -> None:
    name = model.maker.rsplit(".", 1)[-1]
    is_changed = any(stem in model.fields or ("part", stem) in model.fields for stem in STEMS)
    if len(shape.sizes) != 4 or is_changed:
        return
    got = shape.sizes[1]
    if isinstance(got, int) and got != COLOURS:
        text = f"{name} takes images of {COLOURS} channels and receives {got}: {shape}"
        raise Mismatch("channels", COLOURS, got, text)


def _outputs(model: Result, shapes: TensorShapes) -> Dim | None:
    """Return the outputs of the head, which is often replaced by one for other classes."""
    for head in HEADS:
        if head in model.fields:
            return _last_width(model.fields[head], shapes)
        inner = model.fields.get(("part", head))
        if inner is not None and any(not isinstance(k, tuple) for k in inner.fields):
            return None  # a part of the head is replaced
    if "**" in model.kwargs:
        return None
    found = shapes.of(model.kwargs.get("num_classes", Known(CLASSES)))
    return found if is_dim(found) else None


def _last_width(head: Value, shapes: TensorShapes) -> Dim | None:
    layers = layers_of(head) if layer_kind(head) == "Sequential" else [head]
    wide = [layer for layer in layers or () if layer_kind(layer) == "Linear"]
    if not wide or not layers or layers[-1] is not wide[-1]:
        return None
    found = shapes.of(setting(wide[-1], "out_features"))
    return found if is_dim(found) else None
