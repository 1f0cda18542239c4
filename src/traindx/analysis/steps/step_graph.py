"""A captured step as a graph: tensors that know what made them and what they are used for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from traindx.model.findings import Evidence
from traindx.model.recording import CapturedStep, Place, Shape, StepOperation, StepTensor
from traindx.model.run import Run

# operations that give the values of their input another shape, type or place
RESHAPES = frozenset(
    {"view", "reshape", "unsafe_view", "t", "transpose", "permute", "squeeze", "unsqueeze",
     "expand", "clone", "to", "contiguous", "detach", "alias", "slice", "select", "flatten",
     "unflatten", "movedim", "as_strided", "lift_fresh_copy", "copy", "split", "chunk", "unbind",
     "reshape_alias"}
)  # fmt: skip
MIXES = frozenset({"addmm", "mm", "bmm", "baddbmm", "addbmm", "convolution", "linear", "embedding"})


@dataclass(frozen=True, eq=False)
class TensorNode:
    """A tensor of a step."""

    step: Step
    number: int
    facts: StepTensor

    @property
    def shape(self) -> Shape:
        return self.facts.shape

    @property
    def maker(self) -> Act | None:
        """The operation that computed it; None for what came from outside of the step."""
        return self.step.maker_of(self)

    @property
    def users(self) -> tuple[Act, ...]:
        """The operations that it is given to, in order."""
        return self.step.users_of(self)

    @property
    def is_parameter(self) -> bool:
        return self.facts.role.startswith("parameter:")

    @property
    def is_buffer(self) -> bool:
        return self.facts.role.startswith("buffer:")

    @property
    def is_batch(self) -> bool:
        return self.facts.role.startswith("batch")

    @property
    def label(self) -> str:
        """What a reader knows it by: the name of a parameter, a key of the batch, its operation."""
        if self.facts.role:
            return self.facts.role.split(":", 1)[-1]
        return f"the result of {self.maker.name}" if self.maker is not None else "a tensor"

    @property
    def origin(self) -> TensorNode:
        """What it was before it got another shape, type or place."""
        node, seen = self, 0
        while (act := node.maker) is not None and act.name in RESHAPES and act.inputs and seen < 50:
            node, seen = act.inputs[0], seen + 1
        return node

    @cached_property
    def ancestors(self) -> frozenset[TensorNode]:
        """Everything that it was computed from, with itself."""
        found: dict[TensorNode, None] = {}
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if node in found:
                continue
            found[node] = None
            waiting += node.step.sources_of(node)
        return frozenset(found)

    def depends_on(self, other: TensorNode) -> bool:
        return other in self.ancestors


@dataclass(frozen=True, eq=False)
class Act:
    """An operation of a step."""

    step: Step
    number: int
    record: StepOperation

    @property
    def name(self) -> str:
        return self.record.name

    @cached_property
    def inputs(self) -> tuple[TensorNode, ...]:
        return tuple(self.step.node(i) for i in self.record.inputs)

    @cached_property
    def outputs(self) -> tuple[TensorNode, ...]:
        return tuple(self.step.node(i) for i in self.record.outputs)

    @property
    def output(self) -> TensorNode | None:
        return self.outputs[0] if self.outputs else None

    @property
    def module(self) -> str:
        """The innermost module that runs it; empty outside of every module."""
        number, names = self.record.module, self.step.captured.modules
        return names[number] if number is not None and 0 <= number < len(names) else ""

    @property
    def place(self) -> Place | None:
        number, known = self.record.place, self.step.captured.places
        return known[number] if number is not None and 0 <= number < len(known) else None

    def setting(self, name: str) -> object:
        return self.record.settings.get(name)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that it works over, counted from the front; empty where it names none."""
        given = self.setting("dim")
        named = given if isinstance(given, (list, tuple)) else [given]
        rank = len(self.inputs[0].shape) if self.inputs else 0
        return tuple(d + rank if d < 0 else d for d in named if isinstance(d, int) and rank)


class Step:
    """A training step or an evaluation pass."""

    def __init__(self, captured: CapturedStep, path: str) -> None:
        self.captured, self.path = captured, path
        self._nodes = [TensorNode(self, i, t) for i, t in enumerate(captured.tensors)]
        self.acts = tuple(
            Act(self, i, o) for i, o in enumerate(captured.operations) if self._is_whole(o)
        )
        self._makers = {n: a for a in reversed(self.acts) for n in a.record.outputs}
        self._users: dict[int, list[Act]] = {}
        for act in self.acts:
            for number in dict.fromkeys(act.record.inputs):
                self._users.setdefault(number, []).append(act)

    def _is_whole(self, record: StepOperation) -> bool:
        size = len(self._nodes)
        return all(0 <= n < size for n in (*record.inputs, *record.outputs))

    @property
    def is_training(self) -> bool:
        return self.captured.kind != "evaluation"

    def node(self, number: int) -> TensorNode:
        return self._nodes[number]

    @property
    def nodes(self) -> tuple[TensorNode, ...]:
        return tuple(self._nodes)

    def maker_of(self, node: TensorNode) -> Act | None:
        return self._makers.get(node.number)

    def users_of(self, node: TensorNode) -> tuple[Act, ...]:
        return tuple(self._users.get(node.number, ()))

    def sources_of(self, node: TensorNode) -> list[TensorNode]:
        """Return what a tensor was computed from directly."""
        act = self.maker_of(node)
        return [n for n in act.inputs if n is not node] if act is not None else []

    @cached_property
    def losses(self) -> tuple[TensorNode, ...]:
        """What backward was called on."""
        found = (n for n in self.captured.losses if 0 <= n < len(self._nodes))
        return tuple(self.node(n) for n in found)

    @property
    def outputs(self) -> tuple[TensorNode, ...]:
        """What models returned to the program."""
        found = (n for n in self.captured.outputs if 0 <= n < len(self._nodes))
        return tuple(self.node(n) for n in found)

    @cached_property
    def learning(self) -> frozenset[TensorNode]:
        """Everything that a loss was computed from."""
        return frozenset(n for loss in self.losses for n in loss.ancestors)

    @cached_property
    def parametric(self) -> frozenset[TensorNode]:
        """What depends on a trainable parameter."""
        found: set[TensorNode] = {n for n in self._nodes if n.is_parameter or _is_leaf(self, n)}
        for act in self.acts:
            if any(n in found for n in act.inputs):
                found.update(act.outputs)
        return frozenset(found)

    @cached_property
    def labels(self) -> tuple[TensorNode, ...]:
        """What came from outside and meets no parameter before the loss."""
        return tuple(n for n in self._outside if n in self.learning and not self._feeds(n))

    @cached_property
    def inputs(self) -> tuple[TensorNode, ...]:
        """What came from outside and is put through the model."""
        return tuple(n for n in self._outside if self._feeds(n))

    @cached_property
    def _outside(self) -> tuple[TensorNode, ...]:
        found = (n for n in self._nodes if n.maker is None and n.users)
        found = (n for n in found if n.shape and not n.is_buffer and n.facts.role != "empty")
        return tuple(n for n in found if n not in self.parametric)

    def _feeds(self, node: TensorNode) -> bool:
        """Tell whether a tensor is multiplied with parameters, or looks them up."""
        waiting, seen = [node], {node}
        while waiting:
            for act in waiting.pop().users:
                if act.name in MIXES and any(_is_weight(n) for n in act.inputs):
                    return True
                fresh = [n for n in act.outputs if n not in seen and n not in self.parametric]
                seen.update(fresh)
                waiting += fresh
        return False

    def named(self, *names: str) -> Iterator[Act]:
        """Yield the operations of some names, in order."""
        return (a for a in self.acts if a.name in names)

    def cite(self, act: Act, says: str) -> Evidence:
        """Point at an operation by the user's line where it has one."""
        place = act.place
        where = "" if place is None else f" ({place.file}: line {place.line})"
        step = float(self.captured.step)
        return Evidence(f"{says}{where}", self.path, f"line {self.captured.line}", (step, step))


def _is_weight(node: TensorNode) -> bool:
    return node.origin.is_parameter or _is_leaf(node.step, node.origin)


def _is_leaf(step: Step, node: TensorNode) -> bool:
    """Tell whether it is a plain tensor with requires_grad, which some give to an optimizer."""
    return node.facts.needs_grad and step.maker_of(node) is None and not node.is_batch


def steps_of(run: Run, *, training: bool | None = None) -> Iterator[Step]:
    """Yield the steps that were captured; of one kind, if asked for."""
    for process in run.recording.processes if run.recording is not None else ():
        for captured in process.captured:
            if captured.operations:
                step = _step(captured, process.path)
                if training is None or step.is_training is training:
                    yield step


@lru_cache(maxsize=32)
def _step(captured: CapturedStep, path: str) -> Step:
    return Step(captured, path)
