"""What each layer of torch.nn makes of the shape of its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from traindx.analysis.program.shapes import rearrangement, windows
from traindx.analysis.program.shapes.signatures import ALIKE
from traindx.analysis.program.shapes.sizes import Dim, is_dim, is_surely_different, symbol
from traindx.analysis.program.shapes.values import (
    ANY_SHAPE,
    UNKNOWN,
    Layer,
    Mismatch,
    Shape,
    ShapedTensor,
    Value,
)
from traindx.analysis.program.shapes.windows import Symbols

Rule = Callable[[Layer, ShapedTensor, Symbols], Value]


def apply_layer(
    layer: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], symbols: Symbols
) -> Value:
    """Return what a layer makes of its arguments; raise `Mismatch` where it cannot take them."""
    first = args[0] if args else next(iter(kwargs.values()), UNKNOWN)
    tensor = first if isinstance(first, ShapedTensor) else ShapedTensor()
    if layer.kind in ALIKE:
        return ShapedTensor(tensor.shape) if isinstance(first, ShapedTensor) else UNKNOWN
    if layer.kind == "Bilinear":
        return _bilinear(layer, args)
    if layer.kind == "MultiheadAttention":
        return _attention(layer, args, kwargs, symbols)
    if layer.kind in ("TransformerDecoder", "TransformerDecoderLayer"):
        return _transformer(layer, tensor, symbols)
    if layer.kind == "Transformer":
        target = args[1] if len(args) > 1 else kwargs.get("tgt")
        return ShapedTensor(target.shape) if isinstance(target, ShapedTensor) else ShapedTensor()
    rule = RULES.get(layer.kind)
    return UNKNOWN if rule is None else rule(layer, tensor, symbols)


def _features(layer: Layer, name: str, tensor: ShapedTensor) -> None:
    """Require the last dimension to be what the layer was built for."""
    wanted, sizes = layer.number(name), tensor.shape.sizes
    if wanted is not None and sizes and is_surely_different(wanted, sizes[-1]):
        text = (
            f"{layer.kind} was built for {wanted} features and receives {sizes[-1]}: {tensor.shape}"
        )
        raise Mismatch("features", wanted, sizes[-1], text)


def _linear(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    wanted = layer.number("in_features")
    if wanted is not None:
        symbols.assume(tensor, Shape((wanted,), True))
    _features(layer, "in_features", tensor)
    out = layer.number("out_features")
    made = symbols.new() if out is None else out
    if tensor.shape.is_open:
        return ShapedTensor(Shape((*tensor.shape.sizes[:-1], made), True))
    if not tensor.shape.sizes:
        return UNKNOWN
    return ShapedTensor(Shape((*tensor.shape.sizes[:-1], made)))


def _bilinear(layer: Layer, args: Sequence[Value]) -> Value:
    tensors = [a for a in args if isinstance(a, ShapedTensor)]
    if len(tensors) != 2:
        return UNKNOWN
    _features(layer, "in1_features", tensors[0])
    _features(layer, "in2_features", tensors[1])
    out = layer.number("out_features")
    known = out is not None and not tensors[0].shape.is_open
    return (
        ShapedTensor(Shape((*tensors[0].shape.sizes[:-1], out or 0))) if known else ShapedTensor()
    )


def _batch_norm(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    allowed = {"1": (2, 3), "2": (4,), "3": (5,)}.get(layer.kind[-2:-1], (2, 3, 4, 5))
    shape = tensor.shape
    wanted = layer.number("num_features")
    if shape.rank is not None and shape.rank not in allowed:
        text = f"{layer.kind} takes {_either(allowed)} input and receives {shape.rank}D: {shape}"
        raise Mismatch("rank", _either(allowed), f"{shape.rank}D", text)
    if shape.rank is None or wanted is None:
        return ShapedTensor(shape)
    _channels(layer, wanted, shape, 1)
    return ShapedTensor(shape)


def _either(ranks: tuple[int, ...]) -> str:
    return " or ".join(f"{rank}D" for rank in ranks)


def _channels(layer: Layer, wanted: Dim, shape: Shape, at: int) -> None:
    if at < len(shape.sizes) and is_surely_different(wanted, shape.sizes[at]):
        text = (
            f"{layer.kind} was built for {wanted} channels and receives {shape.sizes[at]}: {shape}"
        )
        raise Mismatch("channels", wanted, shape.sizes[at], text)


def _instance_norm(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    wanted, count = layer.number("num_features"), windows.dimensions(layer.kind)
    is_checked = layer.options.get("affine") is True and tensor.shape.rank == count + 2
    if wanted is not None and is_checked:
        _channels(layer, wanted, tensor.shape, 1)
    return ShapedTensor(tensor.shape)


def _group_norm(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    wanted = layer.number("num_channels")
    if wanted is not None and tensor.shape.rank is not None:
        _channels(layer, wanted, tensor.shape, 1)
    return ShapedTensor(tensor.shape)


def _layer_norm(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    given = layer.options.get("normalized_shape")
    wanted = given if isinstance(given, tuple) else (given,)
    last = tensor.shape.sizes[-len(wanted) :]
    if len(last) == len(wanted):
        for expected, got in zip(wanted, last, strict=True):
            if is_dim(expected) and is_surely_different(expected, got):
                text = (
                    f"{layer.kind} was built for {expected} features and receives {got}: "
                    f"{tensor.shape}"
                )
                raise Mismatch("features", expected, got, text)
    return ShapedTensor(tensor.shape)


def _flatten(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    options = layer.options
    return rearrangement.flattened(
        tensor, options.get("start_dim"), options.get("end_dim"), symbols
    )


def _unflatten(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    options = layer.options
    return rearrangement.unflattened(tensor, options.get("dim"), options.get("unflattened_size"))


def _embedding(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    symbols.assume(tensor, Shape((symbol("B"), symbol("T"))))
    width = layer.number("embedding_dim")
    made = symbols.new() if width is None else width
    if layer.kind == "EmbeddingBag":
        return ShapedTensor(Shape((symbols.new(), made)))
    return ShapedTensor(Shape((*tensor.shape.sizes, made), tensor.shape.is_open))


def _recurrent(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    _features(layer, "input_size", tensor)
    is_first = layer.options.get("batch_first")
    wanted = layer.number("input_size")
    if wanted is not None:
        lead = (symbol("B"), symbol("T")) if is_first else (symbol("T"), symbol("B"))
        symbols.assume(tensor, Shape((*lead, wanted)))
    sizes = symbols.closed(tensor, 3)
    if len(sizes) not in (2, 3):
        text = f"{layer.kind} takes 2D or 3D input and receives {len(sizes)}D: {tensor.shape}"
        raise Mismatch("rank", "2D or 3D", f"{len(sizes)}D", text)
    hidden, depth = layer.number("hidden_size"), layer.number("num_layers")
    both = layer.options.get("bidirectional")
    if hidden is None or depth is None or not isinstance(both, bool):
        return UNKNOWN
    projected = layer.number("proj_size") or hidden
    ways = 2 if both else 1
    if len(sizes) == 2:
        return _states(layer, (sizes[0],), (), (projected, hidden), (ways, depth))
    if not isinstance(is_first, bool):
        return UNKNOWN
    batch = sizes[0] if is_first else sizes[1]
    return _states(layer, sizes[:2], (batch,), (projected, hidden), (ways, depth))


def _states(
    layer: Layer,
    lead: tuple[Dim, ...],
    batch: tuple[Dim, ...],
    widths: tuple[Dim, Dim],
    counts: tuple[int, Dim],
) -> Value:
    (projected, hidden), (ways, depth) = widths, counts
    output = ShapedTensor(Shape((*lead, projected * ways)))
    state = ShapedTensor(Shape((depth * ways, *batch, projected)))
    if layer.kind == "LSTM":
        return (output, (state, ShapedTensor(Shape((depth * ways, *batch, hidden)))))
    return (output, state)


def _cell(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    _features(layer, "input_size", tensor)
    hidden = layer.number("hidden_size")
    made = symbols.new() if hidden is None else hidden
    state = ShapedTensor(Shape((*symbols.closed(tensor, 2)[:-1], made)))
    return (state, ShapedTensor(state.shape)) if layer.kind == "LSTMCell" else state


def _attention(
    layer: Layer, args: Sequence[Value], kwargs: Mapping[str, Value], symbols: Symbols
) -> Value:
    given = dict(zip(("query", "key", "value"), args, strict=False)) | dict(kwargs)
    query, key = given.get("query"), given.get("key")
    if not isinstance(query, ShapedTensor):
        return (ShapedTensor(), UNKNOWN)
    _features(layer, "embed_dim", query)
    if isinstance(key, ShapedTensor) and layer.options.get("kdim") is None:
        _features(layer, "embed_dim", key)
    is_bare = given.get("need_weights") is False
    weights: Value = None if is_bare else _weights(layer, query, key, given)
    return (ShapedTensor(query.shape), weights)


def _weights(layer: Layer, query: ShapedTensor, key: Value, given: Mapping[str, Value]) -> Value:
    is_first = layer.options.get("batch_first")
    if not isinstance(key, ShapedTensor) or query.shape.rank != 3 or key.shape.rank != 3:
        return ShapedTensor()
    if not isinstance(is_first, bool) or given.get("average_attn_weights", True) is not True:
        return ShapedTensor()
    batch, rows = query.shape.sizes[:2] if is_first else query.shape.sizes[1::-1]
    return ShapedTensor(Shape((batch, rows, key.shape.sizes[1 if is_first else 0])))


def _transformer(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    inner = layer.options.get("encoder_layer", layer.options.get("decoder_layer", layer))
    if isinstance(inner, Layer) and inner.kind.startswith("Transformer"):
        _features(inner, "d_model", tensor)
    return ShapedTensor(tensor.shape)


def _glu(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    return rearrangement.chunked(tensor, 2, layer.options.get("dim"), symbols)[0]


def _pad(layer: Layer, tensor: ShapedTensor, symbols: Symbols) -> Value:
    count, given = windows.dimensions(layer.kind), layer.options.get("padding")
    pads = (given,) * (2 * count) if is_dim(given) else given
    return windows.padded(tensor, pads, symbols)


RULES: dict[str, Rule] = {
    "Linear": _linear,
    "LazyLinear": _linear,
    "SyncBatchNorm": _batch_norm,
    "LayerNorm": _layer_norm,
    "RMSNorm": _layer_norm,
    "GroupNorm": _group_norm,
    "Flatten": _flatten,
    "Unflatten": _unflatten,
    "Embedding": _embedding,
    "EmbeddingBag": _embedding,
    "RNN": _recurrent,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNNCell": _cell,
    "GRUCell": _cell,
    "LSTMCell": _cell,
    "TransformerEncoderLayer": _transformer,
    "TransformerEncoder": _transformer,
    "Upsample": windows.upsampled,
    "UpsamplingNearest2d": windows.upsampled,
    "UpsamplingBilinear2d": windows.upsampled,
    "PixelShuffle": windows.shuffled,
    "PixelUnshuffle": windows.shuffled,
    "GLU": _glu,
    "Unfold": windows.unfolded,
}
for _n in "123":
    RULES |= {f"Conv{_n}d": windows.convolved, f"ConvTranspose{_n}d": windows.convolved}
    RULES |= {f"{kind}Pool{_n}d": windows.pooled for kind in ("Max", "Avg", "LP")}
    RULES |= {f"Adaptive{kind}Pool{_n}d": windows.pooled for kind in ("Max", "Avg")}
    RULES |= {f"BatchNorm{_n}d": _batch_norm, f"InstanceNorm{_n}d": _instance_norm}
    RULES |= {f"{kind}Pad{_n}d": _pad for kind in ("Zero", "Reflection", "Replication", "Constant")}


def weight_shape(layer: Layer) -> Shape:
    """Return the shape of a layer's weight."""
    if layer.kind == "Linear":
        pair = layer.number("out_features"), layer.number("in_features")
    elif layer.kind == "Embedding":
        pair = layer.number("num_embeddings"), layer.number("embedding_dim")
    else:
        return ANY_SHAPE
    first, second = pair
    return Shape((first, second)) if first is not None and second is not None else ANY_SHAPE
