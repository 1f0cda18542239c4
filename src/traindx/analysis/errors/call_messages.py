"""What Python and libraries say of calls, attributes, structures and arguments that do not fit."""

from __future__ import annotations

from traindx.analysis.errors.messages import OTHERS, KnownError, Message, Table

LATE_SUPER_INIT: Table = (
    Message(
        r"cannot assign (?P<what>module|parameter|buffer)s? before Module\.__init__\(\) call",
        "A {what} is assigned in a module before super().__init__() is called",
        shows="missing-super-init",
    ),
    Message(
        r"'(?P<owner>\w+)' object has no attribute '_(?:backward_hooks|modules|parameters|buffers"
        r"|forward_hooks|non_persistent_buffers_set|forward_pre_hooks|backward_pre_hooks)'",
        "The module {owner} never called super().__init__()",
        shows="missing-super-init",
    ),
)
NORM_OF_ONE_VALUE: Table = (
    Message(
        r"Expected more than 1 (?:value per channel|spatial element) when training, got input size "
        r"(?:torch\.Size\()?\[(?P<shape>[\d, ]*)\]",
        "A normalization layer in train mode got one value per channel (input shape [{shape}])",
        shows="batchnorm-small-batch",
    ),
)
SCHEDULE: Table = (
    Message(
        r"Tried to step (?P<step>\d+) times. The specified number of total steps is (?P<total>\d+)",
        "The learning-rate schedule has {total} steps, and step {step} was requested",
        shows="lr-schedule-misuse",
    ),
    Message(
        r"param 'initial_lr' is not specified in param_groups\[\d+\] when resuming",
        "The learning-rate schedule is resumed, but the optimizer has no initial_lr",
        shows="lr-schedule-misuse",
    ),
)
NO_PARAMETERS: Table = (
    Message(
        r"optimizer got an empty parameter (?:list|group)",
        "The optimizer got an empty parameter list[[: {culprit}]]",
        moderate="unregistered-submodules frozen-parameters api-misuse",
        kind="optimizer",
    ),
    Message(
        r"module doesn't have any parameters that require a gradient",
        "DistributedDataParallel wraps a model without trainable parameters",
        strong="frozen-parameters",
    ),
)
MANY_VALUES: Table = (
    Message(
        r"(?:Boolean|bool) value of Tensor with (?:more than one|no) values? is ambiguous"
        r"|truth value of an array with more than one element is ambiguous",
        "A tensor of several values is used as a condition; use .any() or .all()",
        shows="api-misuse",
        kind="condition",
    ),
    Message(
        r"a Tensor with (?P<count>\d+) elements cannot be converted to Scalar"
        r"|only one element tensors can be converted to Python scalars"
        r"|only (?:length-1|size-1|0-dimensional) arrays can be converted to Python scalars",
        "A tensor of [[{count}||several]] values is converted to a scalar; reduce it first, for "
        "example with .mean()",
        shows="api-misuse",
    ),
)
NO_FORWARD: Table = (
    Message(
        r"Module \[(?P<name>ModuleList|ModuleDict)\] is missing the required \"forward\" function",
        "A {name} is called, but it has no forward; loop over its layers or use nn.Sequential",
        shows="api-misuse",
        types="NotImplementedError",
    ),
    Message(
        r"Module \[(?P<name>\w+)\] is missing the required \"forward\" function",
        "The module {name} has no forward method[[: {culprit}]]",
        shows="api-misuse",
        types="NotImplementedError",
    ),
)
NOT_CALLABLE: Table = (
    Message(
        r"'(?P<kind>[\w.]+)' object is not callable",
        "A {kind} is called like a function",
    ),
    # a name that a function assigns is its own throughout, also before the assignment
    Message(
        r"local variable '(?P<name>\w+)' (?:referenced before assignment"
        r"|where it is not associated with a value)",
        "The local variable {name} is read before it is assigned",
        shows="name-shadowed",
        kind="unbound",
    ),
)
STRIDED_VIEW: Table = (
    Message(
        r"view size is not compatible with input tensor's size and stride"
        r"|input is not contiguous.{0,40}view",
        "[[{view}||A view()]] is called on a non-contiguous tensor (not in memory order)",
        shows="non-contiguous-view",
    ),
)
TRACED_VALUE: Table = tuple(
    Message(
        rf"(?s)(?:{pattern})(?:.*?tracing the function (?P<name>\S+) at (?P<place>\S+?:\d+))?",
        f"A traced value {does}[[ while {{name}} ({{place}}) is compiled]]",
        shows="api-misuse",
    )
    for pattern, does in (
        (r"Encountered an unexpected tracer", "is kept beyond the function that made it"),
        (
            r"Attempted boolean conversion of traced array|problem arose with the `bool` function"
            r"|[Uu]sing a (?:symbolic )?`?tf\.Tensor`? as a Python `?bool`? is not allowed",
            "decides a branch in Python",
        ),
        (
            r"__array__\(\) method was called on (?:the JAX Tracer object|traced array)"
            r"|numpy\.ndarray conversion method __array__\(\) was called|NumPy array conversion of"
            r"|Cannot convert a symbolic (?:tf\.)?(?:Tensor|Keras input)",
            "is passed to numpy",
        ),
        (
            r"Abstract tracer value encountered where concrete value is expected"
            r"|Shapes must be 1D sequences of concrete values|TracerIntegerConversionError"
            r"|concrete value was not available in Python|Array boolean indices must be concrete",
            "is used where a concrete number is required",
        ),
    )
)
MISSING_ATTRIBUTE: Table = (
    Message(r"'_(?:backward_hooks|modules|parameters|buffers|forward_hooks)", kind=OTHERS),
    Message(
        r"module '(?P<library>torch|torchvision|torchaudio|numpy|transformers|lightning"
        r"|pytorch_lightning|PIL)(?P<part>(?:\.\w+)*)' has no attribute '(?P<name>\w+)'",
        "The installed {library} has no {library}{part}.{name}",
        strong="version-mismatch",
        weak="api-misuse",
    ),
    Message(
        r"'NoneType' object has no attribute '(?P<name>\w+)'",
        "The code reads .{name} of None; {origin}",
        strong="api-misuse",
        kind="None",
    ),
    Message(
        r"'NoneType' object is not (?P<name>\w+)",
        "None is used as if it were {name}; {origin}",
        strong="api-misuse",
        kind="None",
    ),
    # what modules have and tensors do not: a tensor has taken the name of a model
    Message(
        r"'Tensor' object has no attribute '(?P<name>parameters|named_parameters|state_dict"
        r"|load_state_dict|modules|named_modules|children|train|eval|zero_grad"
        r"|register_forward_hook)'",
        "The code reads .{name} of a tensor; a tensor was assigned to the model's name",
        strong="name-shadowed",
        weak="api-misuse",
    ),
    # a number has no graph left: `.item()` or float() was taken of the loss before backward
    Message(
        r"'(?P<kind>float|numpy\.float\d+|numpy\.ndarray)' object has no attribute "
        r"'(?:backward|requires_grad_)'",
        "The loss is a {kind}, which has no graph for backward()",
        strong="detached-loss",
        weak="api-misuse",
    ),
    Message(
        r"type object '(?P<owner>[\w.]+)' has no attribute '(?P<name>\w+)'",
        "The class {owner} has no attribute {name} in the installed version",
        moderate="version-mismatch api-misuse",
    ),
    Message(
        r"'(?P<owner>[\w.]+)' object has no attribute '(?P<name>\w+)'",
        "A {owner} has no attribute {name}",
        strong="api-misuse",
    ),
)
CALL_ARGUMENTS: Table = (
    Message(
        r"(?P<name>[\w.]+)\(\) takes (?:from (?P<least>\d+) to )?(?P<most>\d+) positional "
        r"arguments? but (?P<given>\d+) (?:was|were) g",
        "The call passes {count} arguments to {name}, which takes {takes}",
        shows="api-misuse",
        types="TypeError",
        kind="count",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: "
        r"(?P<missing>.*[^.\n])",
        "The call of {name} leaves out {missing}",
        shows="api-misuse",
        types="TypeError",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        "The call passes an unknown keyword argument {argument} to {name}",
        shows="api-misuse",
        types="TypeError",
        kind="keyword",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\) got multiple values for argument '(?P<argument>\w+)'",
        "The call passes the argument {argument} to {name} twice",
        shows="api-misuse",
        types="TypeError",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\): argument '(?P<argument>\w+)' \(position (?P<position>\d+)\) must "
        r"be (?P<wanted>[\w ]+?),? not (?P<got>\w+)",
        "Argument {position} of {name} ({argument}) must be {wanted}, but is {got}",
        shows="api-misuse",
        types="TypeError",
    ),
)


def argument_counts(known: KnownError) -> dict[str, str]:
    """Return how many arguments are passed and taken, without self."""
    if known.kind != "count":
        return {}
    name = known["name"]
    less = 1 if "." in name or name in ("forward", "__init__") else 0
    least = f"{known.number('least') - less} to " if known["least"] else ""
    takes = f"{least}{known.number('most') - less}{' besides self' if less else ''}"
    return {"count": str(known.number("given") - less), "takes": takes}


STRUCTURE: Table = (
    Message(
        r"^(?P<name>['\"](?:[A-Z][A-Z0-9]*_)*(?:RANK|SIZE|ADDR|PORT|DEVICES|HOME)['\"])$",
        "The environment variable {name} is not set; the script was not started by a launcher",
        shows="rendezvous-failure",
        types="KeyError",
    ),
    Message(
        r"^\s*(?P<key>['\"].+['\"]|\d+)\s*$",
        "The key {key} does not exist",
        strong="api-misuse",
        types="KeyError",
    ),
    Message(
        r"not enough values to unpack \(expected (?:at least )?(?P<wanted>\d+)(?:, got (?P<got>\d+)"
        r")?",
        "{wanted} values are unpacked, but there are [[{got}||fewer]]",
        strong="api-misuse",
        types="ValueError",
    ),
    Message(
        r"too many values to unpack \(expected (?:at least )?(?P<wanted>\d+)(?:, got (?P<got>\d+)"
        r")?",
        "{wanted} values are unpacked, but there are [[{got}||more]]",
        strong="api-misuse",
        types="ValueError",
    ),
    Message(
        r"^(?P<kind>list|tuple|string) (?:assignment )?index out of range",
        "A {kind} is read past its end",
        strong="api-misuse",
        types="IndexError",
    ),
    Message(
        r"(?P<kind>list|tuple|string) indices must be integers(?:(?: or slices)?,? not "
        r"'?(?P<by>\w+)'?)?",
        "A {kind} is indexed by a [[{by}||name]], as if it were a dict",
        strong="api-misuse",
        types="TypeError",
    ),
    Message(
        r"'(?P<kind>[\w.]+)' object is not subscriptable",
        "A {kind} is indexed",
        strong="api-misuse",
        types="TypeError",
    ),
    Message(
        r"'(?P<kind>[\w.]+)' object is not iterable",
        "A {kind} is looped over",
        strong="api-misuse",
        types="TypeError",
    ),
    Message(
        r"unsupported operand type\(s\) for (?P<operator>[^:\s]+(?: [^:\s]+)*)\s*: "
        r"'(?P<left>[\w.]+)' and '(?P<right>[\w.]+)'",
        "Operator {operator} gets a {left} and a {right}",
        strong="api-misuse",
        types="TypeError",
    ),
)
REFUSALS: Table = (
    Message(
        r"did not return a loss from the inputs, only the following keys: (?P<keys>[\w, ]+?)\. For "
        r"reference, the inputs it received are (?P<inputs>[\w, ]*(?:label|position)[\w, ]*)",
        "The model returns {keys} but no loss; it has no task head (inputs: {inputs})",
        strong="api-misuse",
    ),
    Message(
        r"did not return a loss from the inputs, only the following keys: (?P<keys>[\w, ]+?)\. For "
        r"reference, the inputs it received are (?P<inputs>[\w, ]+)",
        "The model returns {keys} but no loss; the batch has no labels (inputs: {inputs})",
        strong="api-misuse",
    ),
    Message(
        r"(?s)No columns in the dataset match the model's forward method.{0,120}ignored: \[?"
        r"(?P<columns>\w+(?:[, ]+\w+)*)",
        "The model's forward takes none of the dataset's columns ({columns})",
        strong="api-misuse",
    ),
    Message(
        r"tokenizer does not have a padding token|(?:if|since) no padding token is defined",
        "The tokenizer has no padding token, and the batch needs padding",
        strong="api-misuse",
    ),
    Message(
        r"TextEncodeInput must be|input must be of type `?str`?",
        "The tokenizer got something other than text, such as a number, None or a whole column",
        strong="api-misuse",
    ),
    Message(
        r"Column \d+ named (?P<name>\w+) expected length (?P<wanted>\d+) but got length "
        r"(?P<got>\d+)",
        "A `map` function returns {got} rows of {name}, but {wanted} rows of the other columns; "
        "all columns must have the same length",
        strong="api-misuse",
    ),
    Message(
        r"Classification metrics can't handle a mix of (?P<labels>[\w-]+) and (?P<outputs>[\w-]+) "
        r"targets",
        "A classification metric got {labels} labels and {outputs} predictions; turn scores into "
        "classes first, with a threshold or argmax",
        strong="api-misuse",
    ),
    Message(
        r"(?:conditioned on metric|ModelCheckpoint\(monitor=)\W{0,3}(?P<metric>[\w/.-]+)\W{1,4}"
        r".{0,20}(?:which is not available|not found)",
        "The metric {metric} is monitored, but never logged under that name",
        strong="api-misuse",
    ),
    Message(
        r"`?training_step`? returns a dict, the 'loss' key needs to be present",
        "training_step returns a dict without a loss",
        strong="api-misuse",
    ),
    # torch 2.0 gave its schedulers another parent
    Message(
        r"provided lr scheduler .{0,60}doesn't follow PyTorch's LRScheduler API",
        "Lightning rejects its configuration: {said}",
        strong="version-mismatch",
        moderate="api-misuse",
        types="MisconfigurationException",
    ),
    Message(
        "",
        "Lightning rejects its configuration: {said}",
        strong="api-misuse",
        types="MisconfigurationException",
    ),
)
# a check of values and not of how something is called: other rules know what they mean
VALUE_CHECKS: Table = (
    Message(
        r"(?i)\bnan\b|\binf(?:inity|inite)?\b|non-?finite|constraint|memory|out of bounds"
        r"|out of range|No such file|does not exist|not found|requires? .{0,40}(?:installed"
        r"|version)|pip install|num_samples|empty parameter|\bCUDA\b|\bNCCL\b|state_dict|worker"
        r"|timed? ?out"
    ),
)
