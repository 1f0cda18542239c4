"""Operations with a gradient of their own: classes derived from `torch.autograd.Function`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.frameworks import CONTEXT
from traindx.analysis.program.execution.values import (
    ClassValue,
    FunctionValue,
    Items,
    Known,
    Part,
    Result,
    Value,
    depends_on,
    options_of,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.contents import SAME_NUMBERS, same_numbers
from traindx.analysis.program.training.operations import is_in_place, operation_of
from traindx.analysis.program.training.program import Program, Story


@dataclass(frozen=True, eq=False)
class CustomFunction:
    """An operation, and both of its directions where they ran."""

    story: Story
    cls: ClassValue
    context: Value
    forward: ProgramEvent
    backward: ProgramEvent
    is_applied: bool  # the program applies it

    @property
    def name(self) -> str:
        return self.cls.node.name

    @property
    def inputs(self) -> tuple[Value, ...]:
        """What forward was given."""
        return tuple(v for v in self.forward.args if v is not self.context)

    @property
    def is_judged(self) -> bool:
        """Tell whether it is applied, to inputs of which none is another one once more."""
        return self.is_applied and len({id(v) for v in self.inputs}) == len(self.inputs)

    @property
    def gradients(self) -> tuple[Value, ...]:
        """What backward may return: one value for each way through it."""
        return () if self.backward.result is None else options_of(self.backward.result)

    def counts(self) -> tuple[int, int] | None:
        """Return how many inputs forward needs and takes; None where it takes any number."""
        node = self.forward.callee.node if isinstance(self.forward.callee, FunctionValue) else None
        spec = None if node is None else node.args
        if spec is None or spec.vararg is not None or spec.kwarg is not None:
            return None
        has_context = any(v is self.context for v in self.forward.args)
        most = len(spec.posonlyargs) + len(spec.args) - int(has_context)
        return most - len(spec.defaults), most

    def faults(self) -> Iterator[tuple[Value, str]]:
        """Yield what backward returns or reads wrongly, and how, in words."""
        miscounts = ((v, says) for v in self.gradients if (says := self._miscount(v)))
        yield from islice(miscounts, 1)
        read, alone = self.unsaved_read(), self.ignored_upstream()
        if read is not None:
            yield read, "reads saved tensors, and forward saves none"
        if alone is not None:
            yield alone, "does not multiply by the gradient of its output"

    def _miscount(self, returned: Value) -> str:
        """Return how the number of gradients differs from that of the inputs."""
        counts, got = self.counts(), _counted(returned)
        if counts is None or got is None:
            return ""
        needed, inputs = counts
        is_surplus = any(not (isinstance(v, Known) and v.value is None) for v in got[inputs:])
        if len(got) >= needed and not (is_surplus and inputs > 0):
            return ""
        values = "one value" if len(got) == 1 else f"{len(got)} values"
        return f"returns {values} for {inputs} inputs of forward"

    def unsaved_read(self) -> Value | None:
        """Return where backward reads saved tensors although forward has saved none."""
        for event in self.story.events:
            given = (event.receiver, *event.args, *event.kwargs.values())
            if not any(v is self.context for v in given):
                continue
            if event.name == ".save_for_backward" or not (event.is_own or event.receiver):
                return None
        found = self.context.fields.get(("part", "saved_tensors"))
        is_alone = not self.cls.bases and len(self.cls.external_bases) == 1
        return found if isinstance(found, Part) and is_alone else None

    def ignored_upstream(self) -> Value | None:
        """Return a gradient that does not depend on that of the output, though this is not 1."""
        upstream = self.backward.args[1] if len(self.backward.args) == 2 else None
        returned = self.backward.result
        given = returned.members if isinstance(returned, Items) else [returned]
        real = [v for v in given if isinstance(v, Result)]
        is_whole = not isinstance(returned, Items) or returned.is_whole
        if upstream is None or not real or not is_whole or self._may_see(upstream):
            return None
        if any(depends_on(v, upstream) for v in real) or not self._is_weighted():
            return None
        return real[0]

    def _may_see(self, upstream: Value) -> bool:
        """Tell whether something out of sight, or a change in place, gets the gradient."""
        return any(
            not e.is_own and any(v is upstream for v in (e.receiver, *e.args, *e.kwargs.values()))
            and (e.result is None or is_in_place(e.name) or e.act is EventForm.STORE)
            for e in self.story.events
        )  # fmt: skip

    def _is_weighted(self) -> bool:
        """Tell whether a loss is computed from the output other than by adding it."""
        outputs = [e.result for e in self.story.events
                   if e.name == APPLY and e.args and e.args[0] is self.cls]  # fmt: skip
        for backward in self.story.does(Do.BACKWARD):
            loss = backward.subject
            if loss is None or backward.event.args or "gradient" in backward.event.kwargs:
                continue
            for output in outputs:
                is_used = output is not None and depends_on(loss, output)
                if is_used and not any(v is output for v in _added(loss)):
                    return True
        return False

    def passes_on(self) -> bool:
        """Tell whether forward returns what it was given: it is there for its gradient."""
        output = self.forward.result
        if output is None:
            return False
        plain = [_unscaled(v) for v in same_numbers(output)]
        return bool(plain) and all(any(v is given for given in self.inputs) for v in plain)


def _counted(returned: Value) -> list[Value] | None:
    """The values that backward returns; None where their number is out of sight."""
    if isinstance(returned, Items):
        return returned.members if returned.is_whole and returned.kind == "tuple" else None
    is_one = isinstance(returned, Result) and returned.maker.startswith("operator.")
    return [returned] if is_one else None


def _added(loss: Value, depth: int = 20) -> Iterator[Value]:
    """Yield a loss and what it is the plain sum of."""
    yield loss
    operation = operation_of(loss)
    is_sum = operation is not None and operation.name in SAME_NUMBERS | {"add"}
    for below in operation.operands if operation is not None and is_sum and depth else ():
        yield from _added(below, depth - 1)


def _unscaled(value: Value) -> Value:
    """Look through `x * 1.0`."""
    operation = operation_of(value)
    if operation is not None and operation.name == "mul" and len(operation.operands) == 2:
        factor = getattr(operation.operands[1], "value", None)
        return operation.operands[0] if factor == 1 else value
    return value


def custom_functions(program: Program) -> list[CustomFunction]:
    """Return the operations of a program that define their own gradients, each once."""
    found: dict[ast.AST, CustomFunction] = {}
    for story in program.stories:
        forward: dict[int, ProgramEvent] = {}
        applied = {id(e.args[0]) for e in story.events if e.name == APPLY and e.args}
        for event in story.events:
            function = event.callee
            if not isinstance(function, FunctionValue) or function.owner is None:
                continue
            if event.name == "forward":
                forward[id(function.owner.node)] = event
            context = event.args[0] if event.args else None
            before = forward.get(id(function.owner.node))
            if event.name != "backward" or before is None or not isinstance(context, Result):
                continue
            if context.maker == CONTEXT and isinstance(context.args[0], ClassValue):
                cls = context.args[0]
                is_applied = id(cls) in applied
                known = CustomFunction(story, cls, context, before, event, is_applied)
                found.setdefault(cls.node, known)
    return list(found.values())


APPLY = "torch.autograd.Function.apply"
