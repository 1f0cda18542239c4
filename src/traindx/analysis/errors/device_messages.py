"""What is said where tensors are on the wrong device, or fail on one."""

from __future__ import annotations

from traindx.analysis.errors.messages import KnownError, Message, Table
from traindx.analysis.program.program_words import mentions
from traindx.model.findings import Strength
from traindx.model.run import Run

_CPU = r"(?:torch\.)?\w+"
_GPU = r"torch\.(?:cuda|xpu|mps)\.\w+Tensor"
_MEET = "Tensors are on different devices: "
# a tensor that has a shape and no values: its module was made under the meta device, for a
# checkpoint that never came, or its values stay elsewhere until a hook fetches them
TWO_DEVICES: Table = (
    Message(
        r"Cannot copy out of meta tensor|cannot be called on meta tensors"
        r"|[Tt]ensor on device (?:type )?meta\b|expected device meta\b"
        r"|convert meta device type tensor|tensor at meta\b|'Meta' backend",
        "A tensor is on the meta device, so it has a shape but no values",
        shows="device-mismatch",
        kind="meta",
    ),
    Message(
        r"(?s)at least two devices,? (?P<first>[\w:]+)(?:,| and) (?P<second>[\w:]+)(?:.{0,60}"
        r"argument for argument (?P<argument>\w+)(?: in method (?:wrapper_)?(?:CUDA_)?_*"
        r"(?P<method>\w+?)_*(?!\w))?)?",
        _MEET + "{first} and {second}[[, at argument {argument}]][[ of {method}]]",
        shows="device-mismatch",
    ),
    Message(
        r"but got (?P<name>\w+) is on (?P<device>[\w:]+), different from other tensors on "
        r"(?P<others>[\w:]+)(?:.{0,60}in method (?:wrapper_)?(?:CUDA_)?_*(?P<method>\w+?)_*(?!\w))?"
        r"|on the same device, but got (?P<name2>\w+) on (?P<device2>[\w:]+) and \w+ on "
        r"(?P<others2>[\w:]+)",
        _MEET + "{name}[[ of {method}]] is on {device}, the others on {others}",
        shows="device-mismatch",
    ),
    Message(
        rf"Input type \((?P<input>{_GPU}|mkldnn\w*)\) and (?:weight|bias) type "
        rf"\((?P<weight>(?!mkldnn){_CPU})\) should be the same",
        _MEET + "the input is {input}, the weights are {weight}; the model was left on the CPU",
        shows="device-mismatch",
        kind="stray model",
    ),
    Message(
        rf"Input type \((?P<input>(?!mkldnn){_CPU})\) and (?:weight|bias) type "
        rf"\((?P<weight>{_GPU}|mkldnn\w*)\) should be the same",
        _MEET + "the input is {input}, the weights are {weight}; the batch was left on the CPU",
        shows="device-mismatch",
        kind="stray input",
    ),
    Message(
        r"Expected object of (?:device type|backend) (?P<wanted>\w+) but got (?:device type"
        r"|backend) (?P<got>\w+) for (?:sequence element \d+ in sequence )?argument "
        r"(?P<argument>#\d+ '\w+')",
        _MEET + "argument {argument} is on {got}, expected {wanted}",
        shows="device-mismatch",
    ),
    Message(
        r"Tensor on device (?:type )?(?P<got>[\w:]+) is not on the expected device "
        r"(?P<wanted>[\w:]+)",
        _MEET + "a tensor is on {got}, expected {wanted}",
        shows="device-mismatch",
    ),
    Message(
        r"indices should be either on (?:the )?cpu or on the same device as the indexed tensor "
        r"\((?P<device>\w+)\)",
        _MEET + "the indices are on the GPU, the indexed tensor on {device}",
        shows="device-mismatch",
    ),
    Message(
        r"Input and (?P<what>hidden|parameter) tensors are not at the same device, found input "
        r"tensor at (?P<input>[\w:]+) and \w+ tensor at (?P<other>[\w:]+)",
        _MEET + "the input is on {input}, the {what} tensor on {other}",
        shows="device-mismatch",
    ),
    Message(
        r"Expected a '(?P<wanted>[\w:]+)' device type for generator but found '(?P<got>[\w:]+)'",
        _MEET + "a random generator is on {got}, expected {wanted}",
        shows="device-mismatch",
    ),
    Message(
        r"(?:tensors|parameters and buffers|module must have its parameters).{0,80}on device "
        r"(?P<first>cuda:\d+).{0,60}found one of them on device: (?P<second>[\w:]+)",
        _MEET + "{first} and {second}",
        shows="device-mismatch",
    ),
    Message(
        r"(?:tensors|parameters and buffers|module must have its parameters).{0,80}on the same "
        r"device",
        "Not all tensors are on the same device",
        shows="device-mismatch",
    ),
)
NUMPY: Table = (
    Message(
        r"Can't call numpy\(\) on (?:Tensor|Variable) that requires grad",
        "A tensor that requires grad is converted to numpy; call .detach() first",
        shows="api-misuse",
        kind="detach()",
    ),
    Message(
        r"(?i)can't convert (?:(?P<device>\w+(?::\d+)?) device type tensor|(?P<device2>CUDA) tensor"
        r") to numpy",
        "A tensor on {device} is converted to numpy; call .cpu() first",
        shows="api-misuse",
        kind="cpu()",
    ),
    Message(
        r"Got unsupported ScalarType (?P<type>\w+)"
        r"|can't convert np\.ndarray of type (?P<type2>[\w.]+)",
        "The dtype {type} cannot be converted between numpy and torch",
        shows="api-misuse",
    ),
)
_HOW = (
    "the traceback's line is not where it happened, so rerun the batch on the CPU or with "
    "CUDA_LAUNCH_BLOCKING=1"
)
DEVICE_ASSERT: Table = (
    Message(
        r"device-side assert triggered|an illegal memory access was encountered"
        r"|HIP error: .{0,40}assert",
        "An assertion in a CUDA kernel failed{where}; " + _HOW,
        moderate="label-out-of-range index-out-of-range",
    ),
)
INDEX: Table = (
    Message(
        r"index (?P<index>-?\d+) is out of bounds for (?:dimension|axis) -?\d+ with size "
        r"(?P<size>\d+)",
        "Index {index} is out of range for a dimension of size {size}; valid: {allowed}",
        shows="index-out-of-range",
        kind="bounds",
    ),
    Message(
        r"^index out of range(?: in self)?|index out of range: Tried to access index \d+",
        "An embedding or index lookup got an index out of range[[: {culprit}]]",
        shows="index-out-of-range",
    ),
    Message(
        r"srcIndex < srcSelectDimSize|indexSelectLargeIndex|indexSelectSmallIndex"
        r"|index out of bounds|idx_dim >= 0 && idx_dim < index_size|vectorized_gather"
        r"|indexValue >= 0|index >= -sizes\[i\] && index < sizes\[i\]"
        r"|ind >= 0 && ind < ind_dim_size",
        "An embedding or index lookup on the GPU got an index out of range[[: {culprit}]]",
        shows="index-out-of-range",
    ),
)
_OUTPUTS = "BCELoss expects probabilities, but got outputs outside of 0 to 1 (no sigmoid)"
LABELS: Table = (
    Message(
        r"Target (?P<label>-1) is out of bounds",
        "Label −1 is out of range: classes are {allowed}, and −1 usually marks 'no label'",
        shows="label-out-of-range",
        weak="output-size-mismatch",
    ),
    Message(
        r"Target (?P<label>-\d+) is out of bounds",
        "Label {label} is out of range: classes are {allowed}",
        shows="label-out-of-range",
        weak="output-size-mismatch",
    ),
    Message(
        r"Target (?P<label>\d+) is out of bounds",
        "Label {label} is out of range[[ by one: the {count} classes are {allowed}||: it needs at "
        "least {needed} outputs]]",
        shows="label-out-of-range",
        weak="output-size-mismatch",
        kind="label",
    ),
    Message(
        r"target_val >= zero && target_val <= one",
        "Binary cross-entropy got labels outside of 0 to 1",
        shows="label-out-of-range",
        weak="output-size-mismatch",
    ),
    Message(
        r"input_val >= zero && input_val <= one|all elements of input should be between 0 and 1",
        _OUTPUTS,
        shows="loss-expects-probabilities",
    ),
    Message(
        r"all elements of target should be between 0 and 1",
        "Binary cross-entropy got labels outside of 0 to 1",
        shows="label-out-of-range",
        weak="output-size-mismatch",
    ),
    Message(
        r"t >= 0 && t < n_classes|cur_target >= 0"
        r"|Class values must be (?:smaller than num_classes|non-negative)",
        "A label is out of range: classes are {allowed}",
        shows="label-out-of-range",
        weak="output-size-mismatch",
    ),
)


def allowed_indices(known: KnownError) -> str:
    """Return in words which indices a lookup allows."""
    index, size = known.number("index"), known.number("size")
    near = " (off by one: ids start at 1, or the size is one too small)" if index == size else ""
    return f"0 … {size - 1}{near}" if size else "none, since it is empty"


def causes_by_tokenizer(run: Run) -> dict[str, Strength]:
    """A tokenizer in the run makes its size against the table's the likely reason."""
    has_tokenizer = mentions(run, "tokenizer")
    is_known = has_tokenizer or run.config.find("tokenizer", "tokenizer_name") is not None
    return {"vocabulary-mismatch": Strength.MODERATE} if is_known else {}
