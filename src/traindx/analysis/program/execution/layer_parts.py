"""What a layer of torch keeps of how it was made: `layer.in_features`, `conv.kernel_size`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traindx.analysis.program.execution.values import Items, Known, Part, Result, Value, constant
from traindx.analysis.program.shapes.signatures import parameters

HOME = "torch.nn."
PARAMETER = "the parameter that this is"
# what the sizes of a weight are called, its first ones
SIZES = {
    "Linear": ("out_features", "in_features"),
    "Embedding": ("num_embeddings", "embedding_dim"),
    "Conv": ("out_channels", "in_channels"),
    "BatchNorm1d": ("num_features",),
    "BatchNorm2d": ("num_features",),
    "GroupNorm": ("num_channels",),
}
# what a layer makes something else of, or keeps under another name
CHANGED = frozenset({"bias", "device", "dtype", "padding", "stride", "dilation", "normalized_shape",
                     "output_padding", "output_size", "dropout", "activation"})  # fmt: skip


def attribute(owner: Value, name: str) -> Value | None:
    """Return a size or setting that a layer was made with; None where it keeps none of that name.

    Convolutions keep a kernel size for each dimension.
    """
    if not isinstance(owner, Result) or owner.receiver is not None or name in CHANGED:
        return None
    kind = owner.maker.removeprefix(HOME)
    if not owner.maker.startswith(HOME) or "." in kind or not kind[:1].isupper():
        return None
    found = _given(owner, kind, name)
    if name == "kernel_size" and isinstance(found, Known):
        dims = int(kind[-2]) if kind.startswith("Conv") and kind[-2:] in ("1d", "2d", "3d") else 0
        return Items("tuple", held=dict.fromkeys(range(dims), found)) if dims else None
    return found


def weight_sizes(value: Value) -> list[Value] | None:
    """Return the sizes of the weight or bias of a layer; None where they are not in sight."""
    value = value.fields.get(PARAMETER, value) if value.held else value
    if not isinstance(value, Part) or value.key not in ("weight", "bias"):
        return None
    layer, kind = value.of, ""
    if isinstance(layer, Result) and layer.maker.startswith(HOME):
        kind = layer.maker.removeprefix(HOME)
    names = SIZES.get(kind[:-2] if kind.startswith("Conv") else kind)
    is_grouped = kind.startswith("Conv") and constant(attribute(layer, "groups")) != 1
    if names is None or "Transpose" in kind or is_grouped:
        return None
    sizes = [attribute(layer, name) for name in names[: 1 if value.key == "bias" else None]]
    if value.key == "weight" and kind.startswith("Conv"):
        kernel = attribute(layer, "kernel_size")
        sizes += kernel.members if isinstance(kernel, Items) else [None]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) else None


# how many dimensions the weights of a layer have; a bias has one
RANKS = {"Linear": 2, "Embedding": 2, "EmbeddingBag": 2, "LSTM": 2, "GRU": 2, "RNN": 2,
         "LSTMCell": 2, "GRUCell": 2, "RNNCell": 2, "Bilinear": 3, "MultiheadAttention": 2,
         "LayerNorm": 1, "RMSNorm": 1, "GroupNorm": 1, "BatchNorm1d": 1, "BatchNorm2d": 1,
         "BatchNorm3d": 1, "SyncBatchNorm": 1, "PReLU": 1,
         "InstanceNorm1d": 1, "InstanceNorm2d": 1, "InstanceNorm3d": 1}  # fmt: skip
CONVOLUTION = re.compile(r"^(?:Lazy)?Conv(?:Transpose)?([123])d$")


def rank_of(value: Value) -> int | None:
    """Return the number of dimensions of a parameter of a layer; None where it is not in sight."""
    value = value.fields.get(PARAMETER, value) if value.held else value
    layer = value.of if isinstance(value, Part) else None
    if not isinstance(value, Part) or not isinstance(layer, Result):
        return None
    if not layer.maker.startswith(HOME):
        return None
    name = value.key.rsplit(".", 1)[-1] if isinstance(value.key, str) else ""
    kind = layer.maker.removeprefix(HOME)
    convolution = CONVOLUTION.match(kind)
    rank = int(convolution[1]) + 2 if convolution else RANKS.get(kind)
    if rank is None or not ("weight" in name or "bias" in name):
        return None
    if kind in ("LayerNorm", "RMSNorm"):  # over one dimension, or as many as are listed
        given = next(iter((*layer.args, *layer.kwargs.values())), None)
        return len(given.members) if isinstance(given, Items) and given.is_whole else rank
    return 1 if "bias" in name else rank


def tensor_attribute(value: Value, name: str) -> Value | None:
    """Return what the weight of a layer says of its shape: `w.shape`, `w.ndim`."""
    if name == "ndim":
        rank = rank_of(value)
        return None if rank is None else Known(rank)
    sizes = weight_sizes(value) if name == "shape" else None
    return None if sizes is None else Items("tuple", held=dict(enumerate(sizes)))


def tensor_answer(value: Value, name: str, args: Sequence[Value]) -> Value | None:
    """Return what a method of the weight of a layer says of its shape: `w.size(1)`, `w.dim()`."""
    if name in ("dim", "ndimension"):
        rank = rank_of(value)
        return None if rank is None else Known(rank)
    sizes = weight_sizes(value) if name == "size" else None
    if sizes is None:
        return None
    place = constant(args[0]) if args else None
    if place is None:
        return Items("tuple", held=dict(enumerate(sizes)))
    is_inside = isinstance(place, int) and -len(sizes) <= place < len(sizes)
    return sizes[place] if is_inside and isinstance(place, int) else None


def _given(layer: Result, kind: str, name: str) -> Value | None:
    if name in layer.kwargs:
        return layer.kwargs[name]
    if "**" in layer.kwargs:
        return None
    for position, (parameter, has_default, default) in enumerate(parameters(kind)):
        if parameter == name and position < len(layer.args):
            return layer.args[position]
        if parameter == name and has_default:
            return Known(default)
    return None
