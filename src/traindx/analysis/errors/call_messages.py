"""What Python and libraries say of calls, attributes, structures and arguments that do not fit."""

from __future__ import annotations

from traindx.analysis.errors.messages import Message, Table

LATE_SUPER_INIT: Table = (
    Message(
        r"cannot assign (?P<what>module|parameter|buffer)s? before Module\.__init__\(\) call",
        "In a module a {what} is assigned before super().__init__() has run",
        shows="missing-super-init",
    ),
    Message(
        r"'(?P<owner>\w+)' object has no attribute '_(?:backward_hooks|modules|parameters|buffers"
        r"|forward_hooks|non_persistent_buffers_set|forward_pre_hooks|backward_pre_hooks)'",
        "In a module {owner} is used without that super().__init__() has run",
        shows="missing-super-init",
    ),
)
NORM_OF_ONE_VALUE: Table = (
    Message(
        r"Expected more than 1 (?:value per channel|spatial element) when training, got input size "
        r"(?:torch\.Size\()?\[(?P<shape>[\d, ]*)\]",
        "A normalisation layer in train mode got one value per channel: an input of [{shape}]",
        shows="batchnorm-small-batch",
    ),
)
SCHEDULE: Table = (
    Message(
        r"Tried to step (?P<step>\d+) times. The specified number of total steps is (?P<total>\d+)",
        "The schedule is made for {total} steps, and step {step} is asked of it",
        shows="lr-schedule-misuse",
    ),
    Message(
        r"param 'initial_lr' is not specified in param_groups\[\d+\] when resuming",
        "The schedule is resumed, and the optimizer does not know the rate it started with",
        shows="lr-schedule-misuse",
    ),
)
NO_PARAMETERS: Table = (
    Message(
        r"optimizer got an empty parameter (?:list|group)",
        "The optimizer is given no parameter at all[[: {culprit}]]",
        moderate="unregistered-submodules frozen-parameters api-misuse",
        kind="optimizer",
    ),
    Message(
        r"module doesn't have any parameters that require a gradient",
        "A model is to be trained in parallel, and none of its parameters is trainable",
        strong="frozen-parameters",
    ),
)
MANY_VALUES: Table = (
    Message(
        r"(?:Boolean|bool) value of Tensor with (?:more than one|no) values? is ambiguous"
        r"|truth value of an array with more than one element is ambiguous",
        "A tensor of several values is used as a condition; say .any() or .all()",
        shows="api-misuse",
        kind="condition",
    ),
    Message(
        r"a Tensor with (?P<count>\d+) elements cannot be converted to Scalar"
        r"|only one element tensors can be converted to Python scalars"
        r"|only (?:length-1|size-1|0-dimensional) arrays can be converted to Python scalars",
        "A tensor of [[{count}||several]] values is converted to one number; reduce it first, such "
        "as with .mean()",
        shows="api-misuse",
    ),
)
NO_FORWARD: Table = (
    Message(
        r"Module \[(?P<name>ModuleList|ModuleDict)\] is missing the required \"forward\" function",
        "A {name} is called: it only holds layers, loop over them or use nn.Sequential",
        shows="api-misuse",
        types="NotImplementedError",
    ),
    Message(
        r"Module \[(?P<name>\w+)\] is missing the required \"forward\" function",
        "The module {name} is called and has no forward[[: {culprit}]]",
        shows="api-misuse",
        types="NotImplementedError",
    ),
)
NOT_CALLABLE: Table = (
    Message(
        r"'(?P<kind>[\w.]+)' object is not callable",
        "A {kind} is called as if it were a function",
    ),
    # a name that a function assigns is its own throughout, also before the assignment
    Message(
        r"local variable '(?P<name>\w+)' (?:referenced before assignment"
        r"|where it is not associated with a value)",
        "The name {name} is read before the function's own assignment to that name",
        shows="name-shadowed",
        kind="unbound",
    ),
)
STRIDED_VIEW: Table = (
    Message(
        r"view size is not compatible with input tensor's size and stride"
        r"|input is not contiguous.{0,40}view",
        "[[{view}||A view()]] is called on a tensor whose elements are not in memory order",
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
            "is given to numpy",
        ),
        (
            r"Abstract tracer value encountered where concrete value is expected"
            r"|Shapes must be 1D sequences of concrete values|TracerIntegerConversionError"
            r"|concrete value was not available in Python|Array boolean indices must be concrete",
            "is used where a number must be known",
        ),
    )
)
MISSING_ATTRIBUTE: Table = (
    Message(
        r"'_(?:backward_hooks|modules|parameters|buffers|forward_hooks)", kind="super().__init__"
    ),
    Message(
        r"module '(?P<library>torch|torchvision|torchaudio|numpy|transformers|lightning"
        r"|pytorch_lightning|PIL)(?P<part>(?:\.\w+)*)' has no attribute '(?P<name>\w+)'",
        "The installed {library} has no {library}{part}.{name}",
        strong="version-mismatch",
        weak="api-misuse",
    ),
    Message(
        r"'NoneType' object has no attribute '(?P<name>\w+)'",
        "The code tries to read {name} from a None: {origin}",
        strong="api-misuse",
        kind="None",
    ),
    Message(
        r"'NoneType' object is not (?P<name>\w+)",
        "The code tries to treat as {name} a None: {origin}",
        strong="api-misuse",
        kind="None",
    ),
    # what modules have and tensors do not: a tensor has taken the name of a model
    Message(
        r"'Tensor' object has no attribute '(?P<name>parameters|named_parameters|state_dict"
        r"|load_state_dict|modules|named_modules|children|train|eval|zero_grad"
        r"|register_forward_hook)'",
        "A tensor is asked for {name}, which a model has: it took the model's name",
        strong="name-shadowed",
        weak="api-misuse",
    ),
    # a number has no graph left: `.item()` or float() was taken of the loss before backward
    Message(
        r"'(?P<kind>float|numpy\.float\d+|numpy\.ndarray)' object has no attribute "
        r"'(?:backward|requires_grad_)'",
        "Backward is called on a {kind}: the loss lost its graph when it was made one",
        strong="detached-loss",
        weak="api-misuse",
    ),
    Message(
        r"type object '(?P<owner>[\w.]+)' has no attribute '(?P<name>\w+)'",
        "The class {owner} has no {name}: another version of it has, or none",
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
        "The call gives {count} arguments to {name}, which takes {takes}",
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
        "The call gives {name} an argument {argument}, which it does not know",
        shows="api-misuse",
        types="TypeError",
        kind="keyword",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\) got multiple values for argument '(?P<argument>\w+)'",
        "The call gives {name} the argument {argument} twice",
        shows="api-misuse",
        types="TypeError",
    ),
    Message(
        r"(?P<name>[\w.]+)\(\): argument '(?P<argument>\w+)' \(position (?P<position>\d+)\) must "
        r"be (?P<wanted>[\w ]+?),? not (?P<got>\w+)",
        "Argument {position} of {name} ({argument}) has to be {wanted} and is {got}",
        shows="api-misuse",
        types="TypeError",
    ),
)
STRUCTURE: Table = (
    Message(
        r"^(?P<name>['\"](?:[A-Z][A-Z0-9]*_)*(?:RANK|SIZE|ADDR|PORT|DEVICES|HOME)['\"])$",
        "The environment has no {name}: the script was not started by a launcher",
        shows="rendezvous-failure",
        types="KeyError",
    ),
    Message(
        r"^\s*(?P<key>['\"].+['\"]|\d+)\s*$",
        "A key is read that is not there: {key}",
        strong="api-misuse",
        types="KeyError",
    ),
    Message(
        r"not enough values to unpack \(expected (?:at least )?(?P<wanted>\d+)(?:, got (?P<got>\d+)"
        r")?",
        "{wanted} values are unpacked[[, {got} came||, fewer came]]",
        strong="api-misuse",
        types="ValueError",
    ),
    Message(
        r"too many values to unpack \(expected (?:at least )?(?P<wanted>\d+)(?:, got (?P<got>\d+)"
        r")?",
        "{wanted} values are unpacked[[, {got} came||, more came]]",
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
        "A {kind} is indexed by a [[{by}||name]]: it is no dict",
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
        "The model returns {keys} and no loss: it has no head for a task (it got {inputs})",
        strong="api-misuse",
    ),
    Message(
        r"did not return a loss from the inputs, only the following keys: (?P<keys>[\w, ]+?)\. For "
        r"reference, the inputs it received are (?P<inputs>[\w, ]+)",
        "The model returns {keys} and no loss: the batch has no labels (it got {inputs})",
        strong="api-misuse",
    ),
    Message(
        r"(?s)No columns in the dataset match the model's forward method.{0,120}ignored: \[?"
        r"(?P<columns>\w+(?:[, ]+\w+)*)",
        "The model takes none of the columns of the dataset: {columns}",
        strong="api-misuse",
    ),
    Message(
        r"tokenizer does not have a padding token|(?:if|since) no padding token is defined",
        "Sequences are to be padded, and no padding token is set",
        strong="api-misuse",
    ),
    Message(
        r"TextEncodeInput must be|input must be of type `?str`?",
        "A tokenizer gets something that is no text: a number, None or a column as a whole",
        strong="api-misuse",
    ),
    Message(
        r"Column \d+ named (?P<name>\w+) expected length (?P<wanted>\d+) but got length "
        r"(?P<got>\d+)",
        "A function for `map` returns {got} rows of {name} beside {wanted} of the other columns: "
        "every column it returns, or leaves as it is, must have as many",
        strong="api-misuse",
    ),
    Message(
        r"Classification metrics can't handle a mix of (?P<labels>[\w-]+) and (?P<outputs>[\w-]+) "
        r"targets",
        "A metric for classes gets {labels} labels and {outputs} predictions: scores have to be "
        "turned into classes first, by a threshold or argmax",
        strong="api-misuse",
    ),
    Message(
        r"(?:conditioned on metric|ModelCheckpoint\(monitor=)\W{0,3}(?P<metric>[\w/.-]+)\W{1,4}"
        r".{0,20}(?:which is not available|not found)",
        "The metric {metric} is monitored, and nothing logs it under that name",
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
        "Lightning refuses how it is set up: {said}",
        strong="version-mismatch",
        moderate="api-misuse",
        types="MisconfigurationException",
    ),
    Message(
        "",
        "Lightning refuses how it is set up: {said}",
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
