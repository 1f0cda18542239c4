"""Whether a value is a tensor, and where tensors are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.examples import settings_of
from traindx.analysis.program.execution.iteration import wrapped
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    options_of,
    origins,
)
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.layers import is_layer, is_parameter, layer_kind
from traindx.analysis.program.training.operations import operation_name, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MOVES = frozenset({".to", ".cuda"})

FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace",
     "logspace", "eye", "tensor", "as_tensor", "tril_indices", "triu_indices", "hann_window",
     "from_numpy", "normal", "FloatTensor", "LongTensor", "Tensor"}
)  # fmt: skip
# functions of torch that make no tensor
OTHER = frozenset(
    {"device", "save", "load", "manual_seed", "compile", "no_grad", "is_tensor", "numel", "Size",
     "get_default_dtype", "is_grad_enabled", "set_grad_enabled", "enable_grad", "inference_mode",
     "split", "chunk", "unbind", "topk", "sort", "max", "min", "Generator", "typename", "meshgrid",
     "finfo", "iinfo", "seed", "initial_seed", "set_default_dtype", "set_default_device",
     "autocast", "median", "mode", "kthvalue", "broadcast_tensors", "dtype", "memory_format",
     "vmap", "is_floating_point", "is_nonzero", "equal", "allclose", "where", "nonzero", "unique",
     "svd"}
)  # fmt: skip
TUPLES = frozenset({"LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell", "Sequential"})
OF_TENSORS = frozenset(
    {"shape", "device", "dtype", "T", "mT", "data", "grad", "is_cuda", "ndim", "requires_grad",
     "layout", "real", "imag", "H", "nbytes", "itemsize", "is_leaf"}
)  # fmt: skip
MAPPING = frozenset({"items", "keys", "values", "get", "pop", "convert_to_tensors"})
# libraries whose batches are of their own classes and may move in place; labels are tensors still
OWN_BATCHES = frozenset({"transformers", "tokenizers", "torch_geometric", "torchdrug", "ocpmodels"})
LABELS = frozenset({"y", "label", "labels", "target", "targets"})
COUNTERS = frozenset({"i", "step", "batch_idx", "idx", "_", "it", "n", "iteration", "batch_index"})


def is_tensor(story: Story, value: Value | None) -> Answer:
    """Tell whether a value is a tensor, by what made it or by the batch that it is a part of."""
    if isinstance(value, Known) or value is None:
        return Answer.NO
    if isinstance(value, Choice):
        found = {is_tensor(story, option) for option in value.options}
        return found.pop() if len(found) == 1 else Answer.UNKNOWN
    if isinstance(value, Part):
        return _part(story, value)
    if not isinstance(value, Result):
        return Answer.UNKNOWN
    if is_computed_tensor(value):
        return Answer.YES
    return Answer.UNKNOWN


def is_computed_tensor(value: Value) -> bool:
    """Tell whether a function or layer of torch made a value that is certainly a tensor."""
    if not isinstance(value, Result):
        return False
    if is_parameter(value):
        return True
    if value.maker == "()":
        return is_layer(value.receiver) and layer_kind(value.receiver) not in TUPLES
    home, _, last = value.maker.rpartition(".")
    if home in ("torch", "torch.nn.functional", "torch.special", "torch.linalg"):
        return last not in OTHER and (last[:1].islower() or last in FACTORIES)
    if home == "operator" or (value.receiver is not None and is_computed_tensor(value.receiver)):
        is_known = operation_name(value.maker) in SAME_SHAPE
        return is_known and any(is_computed_tensor(v) for v in value.inputs)
    return False


SAME_SHAPE = frozenset(
    {"add", "sub", "mul", "div", "matmul", "pow", "neg", "to", "cuda", "cpu", "float", "double",
     "long", "half", "view", "reshape", "squeeze", "unsqueeze", "mean", "sum", "detach", "clone",
     "relu", "sigmoid", "tanh", "softmax", "log_softmax", "exp", "log", "abs", "permute",
     "transpose", "flatten", "contiguous", "expand", "repeat", "argmax"}
)  # fmt: skip


def _part(story: Story, value: Part) -> Answer:
    """Tell whether a part of something is a tensor: of a batch that a loader gives, it is."""
    if value.key in ("data", "grad", "T", "mT"):
        return is_tensor(story, value.of)
    batch = value.of
    if isinstance(batch, Part) and isinstance(batch.key, int) and _is_counted(story, batch):
        batch = batch.of  # `for i, (x, y) in …`, where the counting is out of sight
    elif _is_counted(story, value):
        return Answer.UNKNOWN
    if not isinstance(value.key, int) or not _is_batch(story, batch):
        return Answer.UNKNOWN
    loader = batch.inputs[0]
    if "collate_fn" in settings_of(loader):
        member = drawn(story, value)
        return is_tensor(story, member) if member is not None else Answer.UNKNOWN
    return Answer.of(None if _is_foreign(story, value) else True)


def drawn(story: Story, part: Part) -> Value | None:
    """Return what the collate function of a loader makes of a part of its batches."""
    batch = part.of
    if not isinstance(batch, Result) or batch.maker != "builtins.next" or not batch.args:
        return None
    loader = wrapped(batch.args[0])
    if "collate_fn" not in settings_of(loader):
        return None
    made = next((x.value for x in story.execution.examples if x.loader is loader), None)
    return made.fields.get(part.key) if isinstance(made, Items) else None


RESHAPES = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "to", "cuda", "cpu", "long", "int",
     "contiguous", "detach", "clone", "transpose", "permute", "type", "t"}
)  # fmt: skip


def whole(story: Story, value: Value) -> Value:
    """Return the tensor of which a value has every number, through reshapes, casts and loaders."""
    for _ in range(30):
        operation = operation_of(value)
        if isinstance(value, Part):
            made = drawn(story, value)
            if made is None:
                return value
            value = made
        elif operation is not None and operation.name in RESHAPES and operation.operands:
            value = operation.operands[0]
        else:
            return value
    return value


def _is_batch(story: Story, value: Value) -> bool:
    """Tell whether a value is what a loader gives."""
    is_drawn = isinstance(value, Result) and value.maker == "builtins.next" and bool(value.args)
    return is_drawn and story.kind_of(value.inputs[0]).kind is Kind.LOADER


def _is_counted(story: Story, part: Part) -> bool:
    """Tell whether a part is the second of a pair of which the first may be a counter.

    A name says so, or that nothing takes the first as nothing takes the number of a batch.
    """
    first = part.of.fields.get(("part", 0))
    if part.key != 1 or first is None:
        return False
    is_unused = not story.flow.takers(first) and not story.made_from(first)
    return bool(first.names & COUNTERS) or (is_unused and not _has_parts(first))


def _has_parts(value: Value) -> bool:
    return any(isinstance(k, tuple) and k[0] == "part" for k in value.fields)


def _is_foreign(story: Story, value: Value) -> bool:
    """Tell whether a value is used as no tensor is: as a mapping, with attributes of its own."""
    keys = {k[1] for k in value.fields if isinstance(k, tuple) and k[0] == "part"}
    if any(isinstance(k, str) and k not in OF_TENSORS for k in keys):
        return True
    for event in story.flow.takers(value):
        is_own = event.receiver is value and event.name[1:] in MAPPING
        if is_own or event.kwargs.get("**") is value:
            return True
        roots = event.module.roots if event.receiver is value else frozenset()
        if roots & OWN_BATCHES and not {n.lower() for n in names_of(value)} & LABELS:
            return True
    return False


def made_without_device(event: ProgramEvent) -> bool:
    """Tell whether an event makes a tensor of more than one number on the default device."""
    home, _, last = event.name.rpartition(".")
    is_factory = home == "torch" and last in FACTORIES
    is_placed = "device" in event.kwargs or "**" in event.kwargs or "out" in event.kwargs
    return (
        is_factory
        and not (is_placed or event.is_one_of)
        and last not in ("tensor", "as_tensor")
        and bool(event.args)
    )


SIZES = frozenset({"size", "dim", "numel", "item", "len", "int", "tolist", "float", "stride"})


CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.process_time"})


def is_number(value: Value) -> bool:
    """Tell whether a value is a size of a tensor or another plain number."""
    if isinstance(value, Known):
        return isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
    if isinstance(value, Part) and isinstance(value.key, int):
        of = value.of
        is_size = isinstance(of, Result) and of.maker == ".size" and not of.args
        return is_size or (isinstance(of, Part) and of.key == "shape")
    if isinstance(value, Result):
        last = value.maker.rsplit(".", 1)[-1]
        if value.maker in CLOCKS:
            return True
        if value.maker in ("operator.sub", "operator.add", "operator.div", "operator.mul"):
            return all(is_number(v) for v in value.args)
        is_named = last in ("numel", "dim", "item") and value.maker.startswith(".")
        return is_named or value.maker == "builtins.len" or (last == "size" and bool(value.args))
    return False


def comes_from(value: Value, sources: Sequence[Value]) -> bool:
    """Tell whether a tensor is computed from others; their sizes are no tensors.

    What a function out of sight makes of a tensor may be a size, too.
    """
    wanted, seen, pending = {id(s) for s in sources}, {id(value)}, [value]
    while pending and len(seen) < 3000:
        found = pending.pop()
        if id(found) in wanted:
            return True
        is_about = isinstance(found, Part) and found.key in ("shape", "device", "dtype", "ndim")
        is_size = isinstance(found, Result) and found.maker.rsplit(".", 1)[-1] in SIZES
        if is_about or is_size or _is_out_of_sight(found):
            continue
        for below in found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return False


SEEN = frozenset({"torch", "operator", "builtins", "einops", "()", ""})


def _is_out_of_sight(value: Value) -> bool:
    return isinstance(value, Result) and value.maker.split(".", 1)[0] not in SEEN


# what gives a tensor that may be elsewhere, or no tensor
LEAVES = frozenset(
    {"to", "cuda", "type_as", "cpu", "xpu", "npu", "mps", "item", "tolist", "size", "dim", "numel",
     "numpy", "stride", "builtins.len", "builtins.int", "builtins.float"}
)  # fmt: skip


NEAR = 6  # values behind one of several, among which a move is looked for


def left_in_place(story: Story, value: Value) -> Iterator[Value]:
    """Yield a tensor and the tensors computed from it that are where it is.

    A parameter moves with its module, a number is nowhere, and what may have been moved may be
    anywhere.
    """
    pending, seen = [value], {id(value)}
    while pending:
        found = pending.pop()
        yield found
        for user in story.flow.users(found):
            if id(user) not in seen and is_left_in_place(user):
                seen.add(id(user))
                pending.append(user)


def is_left_in_place(value: Value) -> bool:
    """Tell whether a value is where those are that it is computed from."""
    if isinstance(value, Choice):
        near = (v for option in value.options for v in origins(option, NEAR))
        return all(is_left_in_place(v) for v in near if not isinstance(v, Choice))
    if is_parameter(value) or is_number(value) or _is_out_of_sight(value):
        return False
    operation = operation_of(value)
    return operation is None or operation.name not in LEAVES


def may_be_accelerator(event: ProgramEvent) -> bool:
    """Tell whether a move goes to something else than the CPU, as far as the source shows it."""
    if event.name == ".cuda":
        return True
    given = event.argument("device", 0)
    return given is not None and any(is_accelerator(v) for v in _devices(given))


def _devices(value: Value) -> Iterator[Value]:
    for option in options_of(value):
        if isinstance(option, Result) and option.maker == "torch.device" and option.args:
            yield from options_of(option.args[0])
        else:
            yield option


def is_accelerator(value: Value) -> bool:
    """Tell whether a device may be another one than the CPU."""
    if isinstance(value, Known):
        is_name = isinstance(value.value, str) and not value.value.startswith("cpu")
        return is_name or isinstance(value.value, int)
    return any("device" in name.lower() for name in names_of(value))


def dropped_moves(story: Story) -> Iterator[ProgramEvent]:
    """Yield where a tensor is moved to a device and nothing takes what the call returns."""
    for event in story.events:
        if event.name not in MOVES or not event.is_dropped:
            continue
        is_probe = any(guard.test is None for guard in event.guards) or event.is_tried
        if not is_probe and not event.is_one_of and is_tensor(story, event.receiver) is Answer.YES:
            yield event
