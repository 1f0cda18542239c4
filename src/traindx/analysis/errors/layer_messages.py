"""What layers, products and losses say of inputs that they were not built for."""

from __future__ import annotations

from traindx.analysis.errors.messages import KnownError, Message, Table

LARGEST_COUNT = 4  # of channels in an image: grey, grey with alpha, RGB, RGBA

_CHANNELS = (
    "{layer} is built for {wanted} channels and receives {got}"
    "[[; the input {last} is channels-last]]"
)
CHANNELS: Table = (
    Message(
        r"Given (?:groups|transposed)=\d+, weight (?:of size )?\[?[\d, x]+\]?, expected input ?"
        r"\[(?P<shape>[\d, x]+)\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels",
        _CHANNELS,
        shows="channel-mismatch",
        kind="A convolution",
    ),
    Message(
        r"(?:running_mean|weight) should contain (?P<got>\d+) elements not (?P<wanted>\d+)",
        _CHANNELS,
        shows="channel-mismatch",
        kind="A normalisation layer",
    ),
    Message(
        r"Expected weight to be a vector of size equal to the number of channels in input, but got "
        r"weight of shape \[(?P<wanted>\d+)\] and input of shape "
        r"\[(?P<shape>\d+, (?P<got>\d+)[\d, ]*)\]",
        _CHANNELS,
        shows="channel-mismatch",
        kind="A group norm",
    ),
    Message(
        r"expected (?P<wanted>\dD(?: or \dD)*)(?: \(.{1,30}\))? input \(got (?P<got>\d)D input\)",
        "{layer} takes {wanted} input and receives {got}D",
        shows="channel-mismatch",
        kind="rank",
    ),
    Message(
        r"[Ee]xpected (?P<wanted>\d)-dimensional input for \d-dimensional weight.{0,80}?got "
        r"(?P<got>\d)-dimensional input",
        "{layer} takes {wanted}D input and receives {got}D",
        shows="channel-mismatch",
        kind="rank",
    ),
)


def is_channels_last(shape: tuple[int, ...], wanted: int) -> bool:
    """Tell whether an image batch has its channels in the last dimension."""
    return len(shape) in (4, 5) and shape[-1] == wanted <= LARGEST_COUNT and shape[1] == shape[2]


def channel_hint(shape: tuple[int, ...], wanted: int, got: int) -> str:
    """Return what the numbers of channels say; empty where they say nothing."""
    if is_channels_last(shape, wanted):
        return (
            f"{list(shape)} is (N, H, W, C), where {got} is the height of the image and {wanted} "
            "its channels; bring it into (N, C, H, W) with `x.permute(0, 3, 1, 2)`"
        )
    if len(shape) == 3 and shape[-1] == wanted:
        return (
            f"{list(shape)} has its {wanted} features last, and a 1d convolution takes them "
            "second; use `x.transpose(1, 2)`"
        )
    return _IMAGE_HINTS.get((wanted, got), "")


_IMAGE_HINTS = {
    (3, 1): "grey images reach a layer for RGB; build it with 1 channel, or convert the images to "
    "RGB with `transforms.Grayscale(3)` where they are loaded",
    (3, 4): 'the images have an alpha channel; open them with `.convert("RGB")`',
    (1, 3): "RGB images reach a layer for grey ones; use 3 channels or `transforms.Grayscale()`",
}
PRODUCTS: Table = (
    Message(
        r"mat1 and mat2 shapes cannot be multiplied \((?P<rows>\d+)x(?P<got>\d+) and "
        r"(?P<wanted>\d+)x(?P<out>\d+)\)"
        r"|size mismatch, m1: \[(?P<rows2>\d+) x (?P<got2>\d+)\], m2: \[(?P<wanted2>\d+) x "
        r"(?P<out2>\d+)\]"
        r"|size mismatch, got (?P<rows3>\d+), \d+x(?P<got3>\d+),(?P<wanted3>\d+)x(?P<out3>\d+)",
        "A layer for {wanted} features receives {got} ({rows}x{got} times {wanted}x{out})",
        strong="shape-mismatch",
        kind="matrices",
    ),
    Message(
        r"Expected (?:size for first two dimensions of )?batch2 tensor to be: \[\d+, "
        r"(?P<wanted>\d+)\] but got: \[\d+, (?P<got>\d+)\]"
        r"|[Ee]xpected (?:tensor|batch2).{0,60}\[\d+, (?P<wanted2>\d+)\].{0,20}but got:? \[\d+, "
        r"(?P<got2>\d+)\]",
        "A batched matrix product (bmm) needs an inner size of {wanted} and gets {got}",
        shows="shape-mismatch",
    ),
)
_OUTPUTS = r"[\[(](?P<outputs>[\w?, ]*)[\])]"
_LABELS = r"[\[(](?P<labels>[\w?, ]*)[\])]"
_UNLIKE = "The output has shape {output_shape} and the labels {label_shape}: {reason}"
LABEL_SHAPES: Table = (
    Message(
        rf"logits and labels must have the same first dimension, got logits shape {_OUTPUTS} and "
        rf"labels shape {_LABELS}",
        _UNLIKE,
        kind="class numbers",
    ),
    Message(
        rf"logits and labels must be (?:same size|broadcastable): logits_size={_OUTPUTS} "
        rf"labels_size={_LABELS}",
        _UNLIKE,
    ),
    Message(rf"Shapes {_LABELS} and {_OUTPUTS} are incompatible", _UNLIKE),
    Message(rf"target\.shape={_LABELS}, output\.shape={_OUTPUTS}", _UNLIKE),
)
Shape = tuple[int | None, ...]


def label_shapes(known: KnownError) -> tuple[str, dict[str, str]]:
    """Return the cause that the shapes of outputs and labels point at, and the claim's words."""
    labels, outputs = (_sizes(known[name]) for name in ("labels", "outputs"))
    if known.kind == "class numbers":
        cause, reason = _of_class_numbers(labels, outputs)
    else:
        cause, reason = _of_two_shapes(labels, outputs)
    return cause, {
        "output_shape": _text(outputs), "label_shape": _text(labels), "reason": reason,
    }  # fmt: skip


def _of_class_numbers(labels: Shape, outputs: Shape) -> tuple[str, str]:
    if labels and len(outputs) > 1:
        rows, wide, count = outputs[0], outputs[-1], labels[0]
        if rows and wide and count == rows * wide and wide > 1:
            return "wrong-loss-for-task", (
                "the loss takes class numbers, and the labels are one-hot; use "
                "categorical_crossentropy"
            )
    return "shape-mismatch", "they do not belong to the same samples or time steps"


def _of_two_shapes(labels: Shape, outputs: Shape) -> tuple[str, str]:
    wide = outputs[-1] if outputs else None
    if len(labels) != len(outputs):
        return "shape-mismatch", "a dimension is missing or too many; flatten or pool the output"
    if labels and labels[-1] == 1 and wide and wide > 1:
        return "wrong-loss-for-task", (
            "the loss takes one-hot labels, and the labels are class numbers; use "
            "sparse_categorical_crossentropy"
        )
    if labels[:-1] == outputs[:-1] and labels and labels[-1] != wide:
        return "output-size-mismatch", (
            "the number of units in the last layer is not the number of classes"
        )
    return "shape-mismatch", "they differ before the last dimension"


def _sizes(text: str) -> Shape:
    parts = [p.strip() for p in text.split(",") if p.strip()]
    return tuple(int(p) if p.isdecimal() else None for p in parts)


def _text(shape: Shape) -> str:
    return f"[{', '.join('any' if s is None else str(s) for s in shape)}]"
