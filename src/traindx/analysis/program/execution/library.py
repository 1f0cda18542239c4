"""What is called outside of the project: Python's own functions, torch, and the unknown."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import (
    calls,
    classes,
    configuration_files,
    forward_hooks,
    frameworks,
    iteration,
    layer_parts,
    mappings,
    model_zoo,
    names,
    namespaces,
    optimizer_parts,
    parameter_names,
    scalars,
    step_hooks,
)
from traindx.analysis.program.execution.events import EventForm, LoopRun
from traindx.analysis.program.execution.machine import BlockEnd
from traindx.analysis.program.execution.truth import truth_of
from traindx.analysis.program.execution.values import (
    MAX_OPTIONS,
    Answer,
    Choice,
    ClassValue,
    External,
    FunctionValue,
    Generator,
    HandedCall,
    Instance,
    Items,
    Known,
    Method,
    ModeRead,
    PartialCall,
    Result,
    Scope,
    Site,
    SuperValue,
    Table,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]
CLOSURES = (FunctionValue, PartialCall, HandedCall)
MODE = "a model's mode"
# methods that give back what they are called on
SAME = frozenset(
    {"to", "cuda", "cpu", "float", "half", "double", "bfloat16", "train", "eval", "requires_grad_",
     "apply", "share_memory", "to_empty", "compile", "type", "xpu", "mps"}
)  # fmt: skip
# functions around a model, optimizer or loader that give it back
GIVES_BACK = frozenset(
    {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel",
     "torch.nn.parallel.DataParallel", "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
     "torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.fsdp.fully_shard",
     "torch.jit.script", "torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm",
     "torch.nn.utils.parametrizations.weight_norm", "typing.cast", "functools.wraps",
     "torch.nn.utils.parametrizations.spectral_norm", "peft.get_peft_model",
     "torch.distributed._composable.fsdp.fully_shard"}
)  # fmt: skip
PREPARES = frozenset({"prepare", "setup", "setup_dataloaders", "prepare_model",
                      "prepare_data_loader", "prepare_optimizer", "setup_module",
                      "setup_optimizers"})  # fmt: skip


def call(
    m: Machine, callee: Value, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value:
    """Call something outside of the project, and note it."""
    site = Site(scope.module, node)
    name, receiver = name_of(callee)
    closure = kwargs.get("closure") or next(iter(args), None) if name == ".step" else None
    if isinstance(closure, CLOSURES):
        calls.call(m, closure, (), {}, node, scope)  # it runs before the update
    if name == ".step":
        step_hooks.run(m, step_hooks.BEFORE, receiver, args, node, scope)
    event = m.record(EventForm.CALL, site, name, receiver, args, kwargs, scope.function)
    if receiver is not None and not isinstance(callee, Method):
        event.is_training, event.mode = mode_of(receiver), held_mode(receiver)
    if not _makes_layer(name):
        given = (a for a in (*args, *kwargs.values()) if a.held)
        event.handed_modes = tuple({a: a.fields[MODE] for a in given if MODE in a.fields}.items())
    if name in GOES_OVER and args and isinstance(args[0], Generator):
        args = (iteration.collected(m, args[0]), *args[1:])
    result = _result(m, callee, name, receiver, args, kwargs, node, scope)
    if result is None:
        _call_back(m, name, args, kwargs, node, scope)
        result = Result(name, receiver, event.args, event.kwargs, m.gradients, site=site)
    if name == "()" and receiver is not None:
        result = forward_hooks.after_pass(m, receiver, args, result, node, scope)
    event.result = result
    if name == ".step":
        step_hooks.run(m, step_hooks.AFTER, receiver, args, node, scope)
    if name.endswith(".LambdaLR") and isinstance(result, Result):
        result.fields[FACTORS] = _factors(m, args, kwargs, node, scope)
    if name in LISTINGS and receiver is not None and isinstance(result, Result):
        result.fields[HELD] = iteration.items_of(modules_in(receiver))
    return result


def _makes_layer(name: str) -> bool:
    """Tell whether a call makes a layer: it runs nothing that it is given."""
    return name.startswith("torch.nn.") and name.rsplit(".", 1)[-1][:1].isupper()


FACTORS = "the factors of a schedule, by step"
PROBES = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 100_000)


def _factors(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value:
    """Ask the function of a schedule for its factor after some numbers of steps."""
    function = kwargs.get("lr_lambda") or (args[1] if len(args) > 1 else None)
    found = Table()
    if not isinstance(function, FunctionValue):
        return found
    first, bound, named = len(m.events), len(m.bindings), len(m.assignments)
    with m.isolated():
        for step in PROBES:
            found.fields[step] = calls.call(m, function, (Known(step),), {}, node, scope)
    del m.events[first:], m.bindings[bound:], m.assignments[named:]
    return found


# what lists the tensors of a model, and the layers that the model had then
LISTINGS = frozenset({".parameters", ".named_parameters", ".state_dict"})
HELD = "the layers that were listed"
# what goes over all that a generator gives, and makes one value of it
GOES_OVER = frozenset(f"builtins.{n}" for n in ("sum", "max", "min", "any", "all", "dict"))
CALLS_NOT = ("builtins.", "functools.", "torch.compile", "typing.", ".apply")
MAX_UNKNOWN = 3  # arguments of a function that is called out of sight


def _call_back(
    m: Machine, name: str, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> None:
    """Run the functions that are given to something out of sight."""
    for given in (*args, *kwargs.values()):
        if not isinstance(given, FunctionValue) or name.startswith(CALLS_NOT) or name == ".step":
            continue
        if given.node in m.entered and not isinstance(given.node, ast.Lambda):
            continue
        handed = kwargs.get("args") or (args[1] if name.endswith(".spawn") and args[1:] else None)
        known = handed.members if isinstance(handed, Items) else []
        first = [Unknown(name="rank")] if name.endswith(".spawn") else []
        frameworks.run_callback(m, given, [*first, *known], node, scope)


def name_of(callee: Value) -> tuple[str, Value | None]:
    """Return under which name a call is noted, and on what it is made."""
    if isinstance(callee, External):
        return callee.name, None
    if isinstance(callee, Method):
        return f".{callee.name}", callee.receiver
    return "()", callee


def _result(
    m: Machine, callee: Value, name: str, receiver: Value | None, args: Sequence[Value],
    kwargs: Keywords, node: ast.AST, scope: Scope,
) -> Value | None:  # fmt: skip
    if isinstance(callee, Method):
        return _method(m, callee, args, kwargs, node, scope)
    is_chain = isinstance(callee, Result) and callee.maker == "torch.nn.Sequential"
    if (is_chain or _is_chain(callee)) and args:
        return _run_chain(m, callee, args[0], node, scope)
    if not isinstance(callee, External):
        return _named_tuple(callee, args, kwargs)
    folded = _folded(m, name, args, kwargs) or configuration_files.loaded(m, name, args, kwargs)
    if folded is not None:
        return folded
    python = _PYTHON.get(name)
    if python is not None:
        return python(m, args, kwargs, node, scope)
    if name in GIVES_BACK and args:
        return args[-1] if name == "typing.cast" else args[0]
    if name == "torch.set_grad_enabled" and args:
        m.gradients = Answer.of(truth_of(args[0]))
    if name in ("functools.partial", "functools.partialmethod") and args:
        return PartialCall(args[0], tuple(args[1:]), dict(kwargs))
    if name.endswith("checkpoint.checkpoint") and args:
        return calls.call(m, args[0], args[1:], {}, node, scope)
    if name.endswith(".default_collate") and args and isinstance(args[0], Items):
        return iteration.element_of(m, args[0])  # a batch is what its rows are
    if name in ("collections.defaultdict", "collections.OrderedDict"):
        made_by = args[0] if name.endswith("defaultdict") and args else None
        is_open = bool(args) and (made_by is None or len(args) > 1)
        return Table(not is_open, made_by)
    if name in namespaces.MAKES:
        return namespaces.namespace(name, args, kwargs, Site(scope.module, node))
    return None


def _named_tuple(callee: Value, args: Sequence[Value], kwargs: Keywords) -> Value | None:
    """Return a tuple whose members have names, as `namedtuple` makes them."""
    is_kind = isinstance(callee, Result) and callee.maker == "collections.namedtuple"
    given = callee.args[1] if is_kind and isinstance(callee, Result) and callee.args[1:] else None
    if isinstance(given, Known) and isinstance(given.value, str):
        keys = given.value.replace(",", " ").split()
    else:
        known = iteration.members(given) if given is not None else None
        keys = [str(k.value) for k in known or () if isinstance(k, Known)]
    values = [*args, *(kwargs[k] for k in keys[len(args) :] if k in kwargs)]
    if not keys or len(values) != len(keys) or any(_is_spread(v) for v in values):
        return None
    made = iteration.items_of(values, "tuple")
    made.fields.update(zip(keys, values, strict=True))
    return made


def _is_spread(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "operator.spread"


FOLDED: dict[str, Callable[..., object]] = {
    "builtins.max": max, "builtins.min": min, "builtins.abs": abs, "builtins.round": round,
    "builtins.int": int, "builtins.float": float, "math.cos": math.cos, "math.sin": math.sin,
    "math.sqrt": math.sqrt, "math.log": math.log, "math.exp": math.exp, "math.ceil": math.ceil,
    "math.floor": math.floor, "math.pow": math.pow,
}  # fmt: skip


def _folded(m: Machine, name: str, args: Sequence[Value], kwargs: Keywords) -> Value | None:
    """Compute with numbers that the source gives; a text that is no number may end a `try`."""
    function = FOLDED.get(name)
    if name in ("builtins.int", "builtins.float") and not args:
        return Known(0 if name == "builtins.int" else 0.0)
    if name in ("builtins.max", "builtins.min") and len(args) == 1:
        only = args[0]
        args = only.members if isinstance(only, Items) and only.is_whole else args
    numbers = [a.value for a in args if isinstance(a, Known)]
    if function is None or kwargs or len(numbers) != len(args) or not args:
        return None
    is_read = name in ("builtins.int", "builtins.float") and isinstance(numbers[0], str)
    if not is_read and not all(isinstance(n, (int, float)) for n in numbers):
        return None
    try:
        return Known(function(*numbers), tuple(args))
    except (ArithmeticError, ValueError, TypeError) as error:
        m.fail(type(error).__name__)
        return None


def _run_chain(m: Machine, chain: Value, value: Value, node: ast.AST, scope: Scope) -> Value | None:
    layers = iteration.seen_layers(chain)
    if not layers or any(isinstance(x, Unknown) or _is_spread(x) for x in layers):
        return None
    before = m.within, m.pass_is_training
    m.within, m.pass_is_training = (*m.within, chain), mode_of(chain)
    try:
        for layer in layers:
            value = calls.call(m, layer, (value,), {}, node, scope)
    finally:
        m.within, m.pass_is_training = before
    return value


def _method(
    m: Machine, callee: Method, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    receiver, name = callee.receiver, callee.name
    if _is_python(receiver, name):
        return _python_method(m, receiver, name, args, kwargs)
    if name == "save_for_backward":
        m.write(receiver.fields, "saved_tensors", iteration.items_of(list(args), "tuple"))
    if name in ("append", "add_module", "register_module", "insert") and args:
        _add_layer(m, receiver, args)
    handle = forward_hooks.method(m, callee, args, kwargs, Site(scope.module, node))
    handle = handle or step_hooks.register(m, callee, args)
    if handle is not None:
        return handle
    if name in ("register_buffer", "register_parameter") and is_module(receiver):
        _register(m, receiver, args, kwargs)
    if frameworks.is_trainer(receiver) and frameworks.drive(
        m, receiver, name, args, kwargs, node, scope
    ):
        return Unknown()
    if name == "run" and isinstance(receiver, Result) and receiver.maker == "ignite.engine.Engine":
        _run_engine(m, receiver, args, node, scope)
    if name == "apply" and args and isinstance(args[0], FunctionValue):
        _apply(m, receiver, args[0], node, scope)
    if name in ("train", "eval"):
        _set_mode(m, receiver, name, args, kwargs, node, scope)
    if (made := frameworks.configured(receiver, name)) is not None:
        return made
    if name in PREPARES and args:
        return args[0] if len(args) == 1 else iteration.items_of(list(args), "tuple")
    if name in SAME and is_model_like(receiver):
        return receiver
    return scalars.answer(receiver, name) or layer_parts.tensor_answer(receiver, name, args)


def _is_python(receiver: Value, name: str) -> bool:
    """Tell whether a value is one of Python's own: a list, a dictionary, a text, `super()`.

    Layers by name are a dictionary, and a model besides.
    """
    is_text = isinstance(receiver, Known) and isinstance(receiver.value, str)
    is_mapping = mappings.entries_of(receiver) is not None
    if isinstance(receiver, Result) and name not in ("items", "values", "keys"):
        return False
    return is_text or is_mapping or isinstance(receiver, (Items, SuperValue))


def _python_method(
    m: Machine, receiver: Value, name: str, args: Sequence[Value], kwargs: Keywords
) -> Value | None:
    if isinstance(receiver, Items):
        return _list_method(m, receiver, name, args)
    if isinstance(receiver, SuperValue):
        return _super_method(m, receiver, name, args, kwargs)
    if isinstance(receiver, Known) and isinstance(receiver.value, str):
        return _text_method(receiver.value, name, args)
    return mappings.method(m, receiver, name, args, kwargs)


def _apply(m: Machine, model: Value, function: FunctionValue, node: ast.AST, scope: Scope) -> None:
    """Call a function with every module that is inside of a model, as far as that is in sight."""
    inside = [part for part in modules_in(model) if is_model_like(part)]
    if not inside and function.node in m.entered:
        return
    for part in inside or [Unknown(name="module")]:
        calls.call(m, function, (part,), {}, node, scope)


def _run_engine(
    m: Machine, engine: Result, args: Sequence[Value], node: ast.AST, scope: Scope
) -> None:
    """Run the step function of an engine of Ignite over its data."""
    over = args[0] if args else Unknown(name="data")

    def body(batch: Value) -> BlockEnd:
        calls.call(m, engine.args[0], (engine, batch), {}, node, scope)
        return BlockEnd.NEXT

    if engine.args:
        iteration.run_over(m, LoopRun(Site(scope.module, node), over), over, body, scope)


def _super_method(
    m: Machine, receiver: SuperValue, name: str, args: Sequence[Value], kwargs: Keywords
) -> Value | None:
    if name == "__init__":
        if isinstance(receiver.bound, Instance) and _is_chain(receiver.bound):
            for position, layer in enumerate(args):
                m.write(receiver.bound.fields, position, layer)
        mappings.fill(m, receiver.bound, args, kwargs)
        optimizer_parts.fill(m, receiver.bound, args, kwargs)
        return Known(None)
    if mappings.entries_of(receiver.bound) is not None:
        return _own_entry(m, receiver.bound, name, args)
    if name in ("train", "eval") and is_module(receiver.bound):
        set_mode(m, receiver.bound, _wanted_mode(name, args, kwargs))
    return receiver.bound if name in ("train", "eval", "to", "apply") else None


def _own_entry(m: Machine, owner: Value, name: str, args: Sequence[Value]) -> Value | None:
    """`super().__getitem__(key)` of a class derived from `dict`."""
    entries = mappings.entries_of(owner)
    if name == "__setitem__" and entries is not None and len(args) == 2:
        iteration.set_item(m, entries, args[0], args[1])
        return Known(None)
    if name == "__getitem__" and len(args) == 1:
        return mappings.item_of(m, owner, args[0])
    return mappings.method(m, owner, name, args, {})


def _is_chain(value: Value) -> bool:
    return isinstance(value, Instance) and "torch.nn.Sequential" in value.cls.foreign


def _add_layer(m: Machine, receiver: Value, args: Sequence[Value]) -> None:
    if isinstance(receiver, Instance) and isinstance(args[0], Known) and len(args) > 1:
        m.write(receiver.fields, args[0].value, args[1])
    elif isinstance(receiver, Result) and receiver.maker in iteration.CONTAINERS:
        position = 1 + max((k for k in receiver.fields if isinstance(k, int)), default=-1)
        m.write(receiver.fields, position, args[-1])


def _register(m: Machine, owner: Value, args: Sequence[Value], kwargs: Keywords) -> None:
    """Keep a tensor under its name, as `register_buffer` does."""
    given = [*args, *(kwargs[k] for k in ("name", "tensor", "param") if k in kwargs)]
    name = given[0].value if given and isinstance(given[0], Known) else None
    if isinstance(name, str) and len(given) > 1:
        given[1].add_name(name)
        m.write(owner.fields, name, given[1])


def is_model_like(value: Value) -> bool:
    """Tell whether a value is no tensor, of which such a method would make another."""
    if isinstance(value, Instance):
        return True
    if isinstance(value, Result):
        is_built = value.maker.startswith("torch.nn.") and "functional" not in value.maker
        is_loaded = value.maker.rsplit(".", 1)[-1] in ("from_pretrained", "from_config")
        is_named = value.receiver is None and model_zoo.makes_model(value.maker)
        return (is_built and value.receiver is None) or is_loaded or is_named
    if isinstance(value, Choice):
        return all(is_model_like(o) for o in value.options)
    return False


def unmoved(value: Value) -> Value:
    """Return what a value is without moves to a device or type: `model.cuda()` is the model."""
    while isinstance(value, Result) and value.receiver is not None and value.maker[1:] in SAME:
        value = value.receiver
    return value


def mode_of(model: Value) -> Answer:
    """Return whether a model is in training mode."""
    held = held_mode(model)
    if held is None:
        known = isinstance(model, Instance) or is_model_like(model)
        return Answer.YES if known else Answer.UNKNOWN
    return Answer.of(truth_of(held))


def _first_mode(model: Value) -> Known:
    """Return the mode in which a model is made."""
    is_loaded = isinstance(model, Result) and model_zoo.begins_evaluating(model.maker)
    return Known(not is_loaded)


def held_mode(model: Value) -> Value | None:
    """Return what the mode of a model was set to last; None where nothing in sight set it.

    Transformers puts what it loads into evaluation mode.
    """
    first = _first_mode(model)
    return model.fields.get(MODE) or (None if first.value else first)


def read_mode(model: Value) -> Value:
    """Return `model.training`: the mode that it is in, where that is known."""
    known = mode_of(model)
    if known is Answer.UNKNOWN:
        return names.part(model, "training")
    return ModeRead(known is Answer.YES, model=model)


def forget_mode(m: Machine, model: Value) -> None:
    """Leave open which mode a model is in."""
    for part in modules_in(model):
        if not isinstance(part, (Items, Table)):
            m.write(part.fields, MODE, Unknown(name="training"))


def is_module(value: Value) -> bool:
    """Tell whether a value is a model or layer made in sight, which begins in training mode."""
    if isinstance(value, Instance):
        return any(f.startswith("torch.nn.") or f.rsplit(".", 1)[-1].endswith("Module")
                   for f in value.cls.foreign)  # fmt: skip
    return isinstance(value, Result) and is_model_like(value)


def _set_mode(
    m: Machine, model: Value, name: str, args: Sequence[Value], kwargs: Keywords, node: ast.AST,
    scope: Scope,
) -> None:  # fmt: skip
    """Set a mode as torch does: `eval()` is `train(False)`, of the class's own where it has one."""
    mode = _wanted_mode(name, args, kwargs)
    set_mode(m, model, mode)
    inside = modules_in(model)
    for part in inside if name == "eval" else inside[1:]:
        own = names.find_method(m, part.cls, "train", part) if isinstance(part, Instance) else None
        if isinstance(own, FunctionValue) and own.node not in m.active:
            calls.call(m, own, (mode,), {}, node, scope)


def _wanted_mode(name: str, args: Sequence[Value], kwargs: Keywords) -> Value:
    given = args[0] if args else kwargs.get("mode")
    return Known(name == "train") if given is None or name == "eval" else given


def set_mode(m: Machine, model: Value, mode: Value) -> None:
    """Put a model and every module inside of it into a mode."""
    for part in modules_in(model):
        if isinstance(part, (Items, Table)):
            continue
        # what it was before, so that a mode that is set under a condition is one of two
        part.fields.setdefault(MODE, _first_mode(part) if is_module(part) else Unknown())
        m.write(part.fields, MODE, mode)


def begin_training(m: Machine, model: Value) -> None:
    """Leave modules in the modes that the program gave them, as Lightning does; others train."""
    for part in modules_in(model):
        if not isinstance(part, (Items, Table)) and held_mode(part) is None:
            m.write(part.fields, MODE, Known(True))


def modes_in(model: Value) -> list[tuple[Value, Value]]:
    """Return every module inside of a model that was put into a mode, with that mode."""
    return [(part, part.fields[MODE]) for part in modules_in(model) if MODE in part.fields]


def restore_modes(m: Machine, modes: Sequence[tuple[Value, Value]]) -> None:
    """Put modules back into the modes that they had."""
    for part, mode in modes:
        m.write(part.fields, MODE, mode)


HOLDERS = (Result, Instance, Items, Table, Choice)  # what may have modules inside
MOST_PARTS = 20_000  # a network of a hundred blocks, in each of which ten attributes are kept


def modules_in(model: Value) -> list[Value]:
    """Return a model and what is inside of it, as far as it is in sight."""
    found: dict[int, Value] = {}
    pending: list[Value] = [model]
    while pending and len(found) < MOST_PARTS:
        value = pending.pop()
        if id(value) in found:
            continue
        found[id(value)] = value
        if isinstance(value, Choice):
            pending.extend(value.options)
        elif isinstance(value, Result):
            own = () if value.maker.startswith("copy.") or _is_member(value) else value.inputs
            held = (*own, *value.held.values()) if value.held else own  # most have no fields
            pending.extend([v for v in held if isinstance(v, HOLDERS) and id(v) not in found])
        if isinstance(value, (Instance, Items, Table)):
            pending.extend(value.fields.values())
    return list(found.values())


def _is_member(value: Result) -> bool:
    """Tell whether a value is one of the modules of a model, and does not hold the model."""
    inner = value.args[0] if value.maker == "builtins.next" and value.args else value
    return isinstance(inner, Result) and inner.maker in (".modules", ".children", ".parameters")


def _list_method(m: Machine, owner: Items, name: str, args: Sequence[Value]) -> Value | None:
    if name in ("append", "add", "insert", "appendleft") and args:
        at = args[0] if name == "insert" else Known(0) if name == "appendleft" else None
        iteration.insert(m, owner, at, args[-1])
        return Known(None)
    if name == "extend" and args:
        several = iteration.members(args[0])
        for value in several if several is not None else [iteration.element_of(m, args[0])]:
            iteration.append(m, owner, value)
        if several is None:
            owner.ahead = len(owner.members) - 1 if owner.is_whole else owner.ahead
            owner.is_whole = False
        return Known(None)
    if name in ("clear",):
        for key in list(owner.fields):
            m.write(owner.fields, key, iteration.items_of(()))
        return Known(None)
    if name in ("reverse", "sort"):
        _reorder(m, owner, name)
        return Known(None)
    if name == "copy":
        return iteration.items_of(owner.members, owner.kind, is_whole=owner.is_whole)
    if name in ("pop", "popleft") and owner.fields:
        usual = Known(0) if name == "popleft" else Known(-1)
        return iteration.take_out(m, owner, args[0] if args else usual)
    return None


def _reorder(m: Machine, owner: Items, name: str) -> None:
    """Turn a list round; in which order a sorted one is, is not known."""
    places = [k for k in owner.fields if isinstance(k, int)]
    values = [owner.fields[k] for k in reversed(places)]
    if name == "sort" or not owner.is_whole:
        any_of = values[0] if len(values) == 1 else Choice(tuple(values[:MAX_OPTIONS]))
        values = [any_of] * len(places)
    for place, value in zip(places, values, strict=True):
        m.write(owner.fields, place, value)


_TEXT_METHODS = frozenset(
    {"lower", "upper", "strip", "startswith", "endswith", "replace", "split", "rsplit", "title",
     "capitalize", "splitlines", "lstrip", "rstrip", "partition", "rpartition", "removeprefix",
     "removesuffix", "isdigit", "isnumeric", "isdecimal", "isalpha", "casefold", "count", "find"}
)  # fmt: skip


def _plain(value: Value) -> object:
    """Return the constant that a value is, or the tuple of constants: of `endswith((a, b))`."""
    if isinstance(value, Items) and value.is_whole and value.kind == "tuple":
        return tuple(m.value for m in value.members if isinstance(m, Known))
    return value.value if isinstance(value, Known) else None


def _text_method(text: str, name: str, args: Sequence[Value]) -> Value | None:
    given = [_plain(a) for a in args]
    if name not in _TEXT_METHODS or None in given:
        return None
    try:
        found = getattr(text, name)(*given)
    except Exception:
        return None
    if isinstance(found, (list, tuple)):
        kind = "tuple" if isinstance(found, tuple) else "list"
        return iteration.items_of([Known(f) for f in found], kind)
    return Known(found)


def _super(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    where: Scope | None = scope
    while where is not None and where.bound is None:
        where = where.around
    if where is None or where.owner is None or where.bound is None:
        return None
    return SuperValue(where.bound, where.owner)


def _listed(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    if not args:
        return iteration.items_of(())
    first = iteration.wrapped(args[0])
    if isinstance(first, Generator):
        return iteration.collected(m, first)
    found = iteration.members(first)
    return None if found is None else iteration.items_of(found)


def _queue(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """A list of which only so many members are kept, where it is told how many."""
    held = _listed(m, args, kwargs, node, scope)
    if not isinstance(held, Items):
        return None
    made = iteration.items_of(held.members, "deque", is_whole=held.is_whole)
    made.born = tuple(m.turns)
    longest = kwargs.get("maxlen", args[1] if len(args) > 1 else None)
    if longest is not None:
        made.fields[iteration.LONGEST] = longest
    return made


def _unique(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """A set holds each member once; of members that are not known nobody can say how many."""
    found = _listed(m, args, kwargs, node, scope)
    if not isinstance(found, Items):
        return found
    once: dict[object, Value] = {}
    for member in found.members:
        once.setdefault(member.value if isinstance(member, Known) else id(member), member)
    is_known = all(isinstance(member, Known) for member in found.members)
    return iteration.items_of(list(once.values()), "set", is_whole=found.is_whole and is_known)


def _sorted(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """What is written down is put in order, where its keys are; of others it is not known."""
    found = iteration.members(args[0]) if args else None
    by, reverse = kwargs.get("key"), truth_of(kwargs.get("reverse", Known(False)))
    if not found or len(found) > iteration.MAX_MEMBERS or reverse is None:
        return None
    keys = found if by is None else [calls.call(m, by, (f,), {}, node, scope) for f in found]
    known = [k.value for k in keys if isinstance(k, Known)]
    if len(known) != len(keys) or len({type(k) for k in known}) != 1:
        return None
    if not isinstance(known[0], (str, int, float)):
        return None
    order = sorted(range(len(known)), key=lambda i: known[i], reverse=reverse)  # type: ignore[arg-type,return-value]
    return iteration.items_of([found[i] for i in order])


def _enumerate(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    over = args[0] if args else None
    ahead = over.ahead if isinstance(over, Items) and not over.is_whole else 0
    found = over.members[:ahead] if isinstance(over, Items) and ahead else None
    found = found or (iteration.members(over) if over is not None else None)
    if found is None or len(found) > iteration.MAX_MEMBERS:
        return None
    given = kwargs.get("start", args[1] if len(args) > 1 else Known(0))
    first = given.value if isinstance(given, Known) else None
    if not isinstance(first, int):
        return None
    rows = [iteration.items_of((Known(i), v), "tuple") for i, v in enumerate(found, first)]
    if not isinstance(over, Items) or not ahead:
        return iteration.items_of(rows)
    more = [iteration.items_of((iteration.index(), v), "tuple") for v in over.members[ahead:]]
    return iteration.with_more(rows, more)


def _zip(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """`zip(*rows)` of an unknown number of rows: their columns."""
    rows = args[0].args[0] if len(args) == 1 and _is_spread(args[0]) else None  # type: ignore[attr-defined]
    if not isinstance(rows, Items) or not rows.fields:
        return None
    found = [row for row in rows.members if isinstance(row, Items) and row.is_whole]
    if len(found) != len(rows.fields) or len({len(row.fields) for row in found}) != 1:
        return None
    columns = zip(*(row.members for row in found), strict=True)
    return iteration.items_of([iteration.items_of(c, is_whole=False) for c in columns], "tuple")


MAX_COUNT = 8  # numbers of a range that are gone through one by one where a model is built


def _range(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """A short range where something is built is written down; a longer one counts epochs."""
    numbers = [a.value for a in args if isinstance(a, Known) and isinstance(a.value, int)]
    building = scope.function is not None and getattr(scope.function, "name", "") == "__init__"
    if len(numbers) != len(args) or not building:
        return None
    found = range(*numbers)
    return iteration.items_of([Known(i) for i in found]) if len(found) <= MAX_COUNT else None


def _next(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    if not args or node in m.drawn:
        return m.drawn.get(node)
    over = iteration.wrapped(args[0])
    if isinstance(over, Generator):
        found = iteration.collected(m, over)
        return found.members[0] if found.fields else Unknown()
    return iteration.element_of(m, over)


def _getattr(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    if len(args) < 2:
        return None
    if isinstance(args[1], Known) and isinstance(args[1].value, str):
        return names.attribute(m, args[0], args[1].value, node, scope)
    return External(f"{args[0].name}.*") if isinstance(args[0], External) else None


def _setattr(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    if len(args) == 3 and isinstance(args[1], Known):
        m.write(args[0].fields, args[1].value, args[2])
        m.record(EventForm.STORE, Site(scope.module, node), str(args[1].value), args[0], (args[2],),
                 {}, scope.function)  # fmt: skip
    return Known(None)


def _dict(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    named = [parameter_names.pairs_of(m, a) or a for a in args]
    return mappings.made_of(named, kwargs)


def _map(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    if len(args) < 2:
        return None
    made: list[Value] = []
    over = args[1] if len(args) == 2 else Result("builtins.zip", args=tuple(args[1:]))
    loop = LoopRun(Site(scope.module, node), over)

    def body(element: Value) -> BlockEnd:
        given = element.members if len(args) > 2 and isinstance(element, Items) else [element]
        made.append(calls.call(m, args[0], given, {}, node, scope))
        return BlockEnd.NEXT

    iteration.run_over(m, loop, over, body, scope)
    return iteration.items_of(made, iteration.ONE_PASS, is_whole=loop.is_whole)


def _filter(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """A filter gives some of what it is given."""
    if len(args) == 2 and isinstance(args[0], FunctionValue):
        calls.call(m, args[0], (iteration.element_of(m, args[1]),), {}, node, scope)
    return None


def _len(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    entries = mappings.entries_of(args[0]) if args else None
    found = iteration.members(entries or args[0]) if args else None
    if found is not None:
        return Known(len(found))
    own = args[0] if args else None
    if isinstance(own, Instance):
        method = names.find_method(m, own.cls, "__len__", own)
        if method is not None:
            return calls.call(m, method, (), {}, node, scope)
    return None


def _copied(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """A copy of an object is another object of the same kind."""
    if not args or not (isinstance(args[0], (Items, Table)) or is_model_like(args[0])):
        return None
    return _copy(args[0], 6)


def _copy(value: Value, depth: int) -> Value:
    if depth == 0:
        return value
    fields = {k: _copy(v, depth - 1) for k, v in value.fields.items()}
    if isinstance(value, Instance):
        return Instance(value.cls, held=fields, original=value)
    if isinstance(value, Items):
        return Items(value.kind, value.is_whole, held=fields)
    if isinstance(value, Table):
        return Table(value.is_whole, held=fields)
    if is_model_like(value) and isinstance(value, Result):
        args = tuple(_copy(a, depth - 1) for a in value.args)
        return Result(value.maker, None, args, value.kwargs, held=fields, site=value.site)
    return value


def _applied(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    """An operation with a gradient of its own runs in both directions."""
    if args and isinstance(args[0], ClassValue):
        frameworks.apply_function(m, args[0], args[1:], node, scope)
    return None


def _hasattr(
    m: Machine, args: Sequence[Value], kwargs: Keywords, node: ast.AST, scope: Scope
) -> Value | None:
    return parameter_names.has_attribute(args)


Python = Callable[["Machine", Sequence[Value], Keywords, ast.AST, Scope], Value | None]
_PYTHON: dict[str, Python] = {
    "builtins.super": _super,
    "builtins.list": _listed,
    "builtins.tuple": _listed,
    "builtins.set": _unique,
    "collections.deque": _queue,
    "builtins.sorted": _sorted,
    "builtins.type": classes.type_of,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.range": _range,
    "builtins.next": _next,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.isinstance": classes.is_instance,
    "builtins.hasattr": _hasattr,
    "builtins.vars": classes.attributes_of,
    "builtins.dict": _dict,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.len": _len,
    "torch.autograd.Function.apply": _applied,
    "copy.deepcopy": _copied,
    "copy.copy": _copied,
}
