"""What layers, products and losses say of inputs that they were not built for."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

_CHANNELS = (
    "{layer} is built for {wanted} channels and receives {got}"
    "[[: the channels come last in {last}]]"
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
PRODUCTS: Table = (
    Message(
        r"mat1 and mat2 shapes cannot be multiplied \((?P<rows>\d+)x(?P<got>\d+) and "
        r"(?P<wanted>\d+)x(?P<out>\d+)\)"
        r"|size mismatch, m1: \[(?P<rows2>\d+) x (?P<got2>\d+)\], m2: \[(?P<wanted2>\d+) x "
        r"(?P<out2>\d+)\]"
        r"|size mismatch, got (?P<rows3>\d+), \d+x(?P<got3>\d+),(?P<wanted3>\d+)x(?P<out3>\d+)",
        "A layer for {wanted} features receives {got} ({rows} rows of {got} times {wanted}x{out})",
        strong="shape-mismatch",
        kind="matrices",
    ),
    Message(
        r"Expected (?:size for first two dimensions of )?batch2 tensor to be: \[\d+, "
        r"(?P<wanted>\d+)\] but got: \[\d+, (?P<got>\d+)\]"
        r"|[Ee]xpected (?:tensor|batch2).{0,60}\[\d+, (?P<wanted2>\d+)\].{0,20}but got:? \[\d+, "
        r"(?P<got2>\d+)\]",
        "A batched product needs an inner size of {wanted} and gets {got}",
        shows="shape-mismatch",
    ),
)
_OUTPUTS = r"[\[(](?P<outputs>[\w?, ]*)[\])]"
_LABELS = r"[\[(](?P<labels>[\w?, ]*)[\])]"
_UNLIKE = "The output is {output_shape} and the labels are {label_shape}: {reason}"
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
