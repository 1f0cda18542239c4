"""Which parameters a loss can teach, and which operation cuts the others off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from traindx.analysis.steps.step_graph import Act, Step, TensorNode
from traindx.model.run import Run

STEPPED = frozenset(
    {"argmax", "argmin", "round", "floor", "ceil", "trunc", "sign", "bucketize", "one_hot",
     "eq", "ne", "gt", "ge", "lt", "le", "argsort", "multinomial", "bernoulli", "searchsorted",
     "topk", "sort", "nonzero", "fix", "heaviside", "histc", "bincount", "clamp_to_int"}
)  # fmt: skip


@dataclass(frozen=True)
class GradientCut:
    """An operation behind which nothing needs a gradient any more, on the way to a loss."""

    act: Act
    parameters: tuple[TensorNode, ...]  # that no other way leads to

    @property
    def is_stepped(self) -> bool:
        """Tell whether the operation itself has no derivative."""
        return self.act.name in STEPPED or _gives_whole_numbers(self.act)

    @property
    def is_without_grad(self) -> bool:
        """Tell whether gradients were switched off where it ran."""
        return self.act.record.is_without_grad

    @property
    def is_detached(self) -> bool:
        return self.act.name == "detach"


def taught(step: Step) -> frozenset[TensorNode]:
    """Return everything that gradients of a loss reach."""
    found: set[TensorNode] = set()
    waiting = [n for n in step.losses if n.facts.needs_grad]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            is_inside = _is_inside_a_function(node)
            waiting += [n for n in step.sources_of(node) if is_inside or n.facts.needs_grad]
    return frozenset(found)


def _is_inside_a_function(node: TensorNode) -> bool:
    """Tell whether it was computed in a custom Function, which has a backward of its own.

    Its operations run without gradients, and what it returns needs them all the same.
    """
    return node.maker is not None and node.maker.record.is_without_grad


def cut_parameters(steps: Iterable[Step], owners: Mapping[str, int] | None = None) -> set[str]:
    """Return the trainable parameters that losses depend on and that no gradient reaches.

    With the optimizers that hold them, only those that belong to one whose others are reached: a
    critic is trained on what the generator made, and leaves the generator alone.
    """
    reached: set[str] = set()
    needed: set[str] = set()
    for step in steps:
        live = taught(step)
        mine = [n for n in step.learning if n.is_parameter and n.facts.needs_grad]
        needed |= {n.label for n in mine}
        reached |= {n.label for n in mine if n in live}
    lost = needed - reached
    if not owners:
        return lost
    at_work = {owners[name] for name in reached if name in owners}
    return {name for name in lost if owners.get(name) in at_work}


def owners_of(run: Run) -> dict[str, int]:
    """Return the optimizer that holds each parameter, by the names that captured steps use."""
    found: dict[str, int] = {}
    for process in run.recording.processes[:1] if run.recording is not None else ():
        for model in process.models:
            prefix = f"{model.id}:" if model.id else ""
            for parameter in model.parameters:
                if parameter.optimizer is not None:
                    found[f"{prefix}{parameter.name}"] = parameter.optimizer
    return found


def cuts(step: Step, parameters: set[str]) -> Iterator[GradientCut]:
    """Yield where the way from some parameters to a loss is cut, the nearest to the loss first."""
    found: dict[Act, list[TensorNode]] = {}
    for node in step.learning:
        if node.is_parameter and node.label in parameters:
            act = _first_cut(step, node)
            if act is not None:
                found.setdefault(act, []).append(node)
    for act in sorted(found, key=lambda a: a.number, reverse=True):
        yield GradientCut(act, tuple(found[act]))


def _first_cut(step: Step, parameter: TensorNode) -> Act | None:
    """Return the operation at which the gradient of a parameter is lost on its way to the loss."""
    waiting, seen = [parameter], {parameter}
    lost: list[Act] = []
    while waiting:
        for act in waiting.pop().users:
            for node in act.outputs:
                if node in seen or node not in step.learning:
                    continue
                seen.add(node)
                if node.facts.needs_grad:
                    waiting.append(node)
                else:
                    lost.append(act)
    return min(lost, key=lambda a: a.number, default=None)


def _gives_whole_numbers(act: Act) -> bool:
    return bool(act.outputs) and act.outputs[0].facts.dtype in ("int64", "int32", "bool", "uint8")
