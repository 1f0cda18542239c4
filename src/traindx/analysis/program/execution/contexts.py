"""`with`: autograd switched, contexts of the project's own, and those out of sight."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, expressions, names, statements
from traindx.analysis.program.execution.machine import BlockEnd
from traindx.analysis.program.execution.truth import truth_of
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    External,
    FunctionValue,
    Generator,
    Instance,
    Result,
    Scope,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})
ON = frozenset({"torch.enable_grad"})
BY_ARGUMENT = frozenset({"torch.set_grad_enabled", "torch.inference_mode"})
# libraries and methods whose contexts leave autograd as it is; of another it is not known
KEEPS = frozenset(
    {"torch", "builtins", "contextlib", "tqdm", "time", "logging", "warnings", "wandb", "mlflow",
     "rich", "tempfile", "threading", "os", "pathlib", "io", "numpy", "random", "multiprocessing",
     "concurrent", "zipfile", "tarfile", "gzip", "h5py", "PIL", "codecarbon", "alive_progress",
     "fastprogress", "cProfile", "str", "operator", "hydra", "click", "typer", "absl", "functools",
     "typing", "beartype", "jaxtyping", "ray", "modal", "dataclasses", "abc", "sacred", "gin",
     "lightning", "accelerate", "deepspeed", "transformers"}
)  # fmt: skip
KEEPS_BY_METHOD = frozenset(
    {"autocast", "accumulate", "no_sync", "join", "profile", "open", "scope", "stream", "device",
     "main_process_first", "local_main_process_first", "start_run", "record_function", "strategy",
     "as_default", "catch_warnings", "average_parameters", "summon_full_params", "progress",
     "command", "main", "automain", "option", "argument", "capture", "on", "register", "task"}
)  # fmt: skip


def is_switch(value: Value) -> bool:
    """Tell whether a context or decorator of torch switches autograd."""
    return isinstance(value, Result) and value.maker in OFF | ON | BY_ARGUMENT


def switch(value: Value, now: Answer) -> Answer:
    """Return whether autograd records inside of a context."""
    if isinstance(value, Choice):
        found = {switch(o, now) for o in value.options}
        return found.pop() if len(found) == 1 else Answer.UNKNOWN
    if not isinstance(value, Result):
        return now
    argument = value.args[0] if value.args else value.kwargs.get("mode")
    if value.maker in BY_ARGUMENT and argument is not None:
        known = truth_of(argument)
        if known is None:
            return Answer.UNKNOWN
        return Answer.of(known if value.maker.endswith("enabled") else not known)
    if value.maker in OFF:
        return Answer.NO
    if value.maker in ON:
        return Answer.YES
    return now if now is Answer.NO or keeps_gradients(value) else Answer.UNKNOWN


def keeps_gradients(value: Value) -> bool:
    """Tell whether a context or decorator out of sight is known to leave autograd as it is."""
    if isinstance(value, External):
        return value.name.split(".", 1)[0] in KEEPS
    if not isinstance(value, Result):
        return not isinstance(value, Unknown)
    if value.receiver is None:
        return value.maker.split(".", 1)[0] in KEEPS
    return value.maker.removeprefix(".") in KEEPS_BY_METHOD


def run_with(
    m: Machine, items: list[ast.withitem], body: Sequence[ast.stmt], scope: Scope
) -> BlockEnd:
    """Enter contexts one after another and run the body inside."""
    if not items:
        return statements.run(m, body, scope)
    item, *rest = items
    before = m.gradients
    value = expressions.evaluate(m, item.context_expr, scope)
    m.gradients = before  # `set_grad_enabled` switches where it is made, and back at the end
    inner = _opened(value)

    def inside(entered: Value) -> BlockEnd:
        if item.optional_vars is not None:
            statements.bind(m, item.optional_vars, entered, scope)
        return run_with(m, rest, body, scope)

    with m.context(value), m.switched(switch(value, m.gradients)):
        if not isinstance(inner, (Generator, Instance)):
            return inside(inner)
        if isinstance(inner, Generator):
            status = _run_own(m, inner, inside)
        else:
            status = _run_instance(m, inner, item, inside, scope)
        after = m.gradients
    m.gradients = after  # what the project's own context has switched stays so
    return status


def _opened(value: Value) -> Value:
    """Look through `contextlib.nullcontext(x)` and `stack.enter_context(x)`."""
    if isinstance(value, Result) and value.maker.endswith("nullcontext") and value.args:
        return value.args[0]
    return value


def _run_own(m: Machine, made: Generator, inside: calls.Body) -> BlockEnd:
    """A context manager that is a generator: the body runs where it yields."""
    ended: list[BlockEnd] = []
    calls.run_generator(m, made, lambda value: ended.append(inside(value)))
    return ended[0] if ended else BlockEnd.NEXT


def _run_instance(
    m: Machine, made: Instance, item: ast.withitem, inside: calls.Body, scope: Scope
) -> BlockEnd:
    node = item.context_expr
    entered: Value = made
    for name in ("__enter__", "__exit__"):
        method = names.find_method(m, made.cls, name, made)
        if name == "__exit__":
            status = inside(entered)
        if isinstance(method, FunctionValue):
            given = () if name == "__enter__" else tuple(calls.unknown_arguments(3))
            result = calls.call(m, method, given, {}, node, scope)
            entered = result if name == "__enter__" else entered
    return status
