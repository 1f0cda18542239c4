"""What autograd saves for backward, and where a program overwrites it before backward needs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.library import modules_in
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.acts import Do, is_gradient, model_of
from traindx.analysis.program.training.gradients import (
    carriers,
    has_history,
    is_cut,
    runs_reached,
    runs_weights,
)
from traindx.analysis.program.training.graphs import Graphs, feeds_backward, graph_of, is_node
from traindx.analysis.program.training.operations import Operation, is_in_place, operation_of
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.updates import happens_with, is_one_turn

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SHARES = frozenset({"getitem", "view", "select", "narrow", "squeeze", "unsqueeze", "t", "transpose",
                   "permute", "expand", "chunk", "split", "unbind"})  # fmt: skip
# whose gradient is computed from what they returned
SAVES_OUTPUT = frozenset({"exp", "expm1", "sigmoid", "tanh", "softmax", "log_softmax", "sqrt",
                          "rsqrt", "reciprocal", "relu", "logsumexp"})  # fmt: skip
# whose gradient is computed from what they were given
SAVES_INPUT = frozenset({"std", "var", "norm", "vector_norm", "square", "log", "log1p", "log2",
                         "sin", "cos", "abs", "gelu", "silu", "softplus", "logsigmoid",
                         "leaky_relu", "layer_norm", "batch_norm", "group_norm"})  # fmt: skip
# layers that multiply their input by a weight
MULTIPLIES = frozenset(f"torch.nn.{name}" for name in ("Linear", "Conv1d", "Conv2d", "Conv3d",
                       "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"))  # fmt: skip
SAVES_BOTH = frozenset({"mul", "matmul"})  # each operand, for the gradient of the other
# what changes no number, or none that was there
HARMLESS = frozenset({"requires_grad_", "detach_", "retain_grad_", "share_memory_", "squeeze_",
                      "unsqueeze_", "transpose_", "t_"})  # fmt: skip
VIEWS = frozenset({"view", "select", "narrow", "squeeze", "unsqueeze", "t", "transpose", "permute",
                   "expand"})  # fmt: skip
SEVERAL = frozenset({"chunk", "split", "unbind"})


@dataclass(frozen=True, eq=False)
class Overwritten:
    """A tensor that backward needs and that is changed in place before."""

    change: ProgramEvent
    saver: Result
    is_view: bool = False  # a layer took a part of it


def overwritten(story: Story) -> Iterator[Overwritten]:
    """Yield where a tensor that an operation saved is changed ahead of the backward through it."""
    graphs = story.recall(Graphs)
    changes = [(e, changed) for e in story.events if (changed := changed_by(e)) is not None]
    if not changes:
        return
    for backward in story.does(Do.BACKWARD):
        if backward.subject is None:
            continue
        saved = _saved(graphs, _in_graph(backward.subject, changes))
        for event, changed in changes:
            for saver in saved.get(id(memory_of(changed)), ()):
                if _lies_between(graphs, saver, event, backward.event):
                    yield Overwritten(event, saver)
                    break


def updated_weights(story: Story) -> Iterator[Overwritten]:
    """Yield where weights that a backward pass needs are updated after its forward pass.

    A layer keeps its weights for the gradient of its input, if that has one.
    """
    graphs = story.recall(Graphs)
    changes = list(_weight_changes(story))
    for backward in story.does(Do.BACKWARD) if changes else ():
        for node in graph_of(backward.subject) if backward.subject is not None else ():
            made = graphs.made_at(node)
            if made is None or not isinstance(node, Result) or not _keeps_weights(node):
                continue
            found = (e for e, owner in changes if _has_layer(owner, node.receiver))
            change = next((e for e in found if _comes_between(made, e, backward.event)), None)
            if change is not None:
                yield Overwritten(change, node)
                break


def _weight_changes(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Yield the steps of torch's optimizers, and changes by hand, with the optimizer or model."""
    for step in story.does(Do.STEP):
        optimizer = step.subject
        if isinstance(optimizer, Result) and optimizer.maker.startswith("torch.optim."):
            yield step.event, optimizer
    for event in story.events:
        changed = changed_by(event)
        model = None if isinstance(changed, Part) and changed.key == "data" else model_of(changed)
        if model is not None and not is_gradient(changed):
            yield event, model


def _has_layer(owner: Value, layer: Value | None) -> bool:
    """Tell whether an optimizer holds a layer, or a model has it."""
    if layer is None:
        return False
    is_optimizer = isinstance(owner, Result) and owner.maker.startswith("torch.optim.")
    return owns(owner, layer) is Answer.YES if is_optimizer else any(
        part is layer for part in modules_in(owner)
    )  # fmt: skip


def _keeps_weights(node: Result) -> bool:
    """Tell whether a call of a layer keeps the layer's weights, for the gradient of its input."""
    layer = node.receiver
    is_run = node.maker == "()" and node.gradients is Answer.YES and isinstance(layer, Result)
    if not is_run or not isinstance(layer, Result) or len(node.args) != 1:
        return False
    return layer.maker in MULTIPLIES and has_history(node.args[0]) is Answer.YES


def _comes_between(made: ProgramEvent, change: ProgramEvent, backward: ProgramEvent) -> bool:
    if not made.order < change.order < backward.order:
        return False
    is_now = is_one_turn(made, backward) and is_one_turn(change, backward)
    return is_now and happens_with(change, backward)


def changed_by(event: ProgramEvent) -> Value | None:
    """Return the tensor that an event changes in place: `x *= y`, `x.add_(y)`, `x[i] = y`."""
    if event.act is EventForm.STORE:
        return event.receiver if event.name == "[]" else None
    if event.is_own or event.result is None:
        return None
    operation = operation_of(event.result)
    last = event.name.rsplit(".", 1)[-1]
    if operation is None or not operation.operands or last in HARMLESS:
        return None
    is_asked = constant(operation.settings.get("inplace")) is True
    is_asked = is_asked or (event.name.startswith(("operator.", ".", "torch."))
                            and is_in_place(event.name) and event.name != "()")  # fmt: skip
    return operation.operands[0] if is_asked and "init" not in event.name else None


def memory_of(value: Value) -> Value:
    """Return the tensor whose memory a value is, or is a view of."""
    for _ in range(12):
        if isinstance(value, Part) and isinstance(value.of, Result):
            whole = operation_of(value.of)
            if whole is None or whole.name not in SEVERAL or not whole.operands:
                return value
            value = whole.operands[0]
            continue
        operation = operation_of(value)
        if operation is None or not operation.operands or not _is_view(operation.name, value):
            return value
        value = operation.operands[0]
    return value


def _is_view(name: str, value: Value) -> bool:
    if name in VIEWS:
        return True
    if name != "getitem" or not isinstance(value, Result) or len(value.args) < 2:
        return False
    key = value.args[1]
    is_tuple = isinstance(key, Items) and key.kind == "tuple"
    return all(_is_plain_key(k) for k in (key.inputs if is_tuple else (key,)))


def _is_plain_key(key: Value) -> bool:
    """Tell whether an index gives a view; one by a tensor or a list copies."""
    if isinstance(key, Known):
        return True
    return isinstance(key, Result) and key.maker == "builtins.slice"


def _in_graph(loss: Value, changes: list[tuple[ProgramEvent, Value]]) -> list[Value]:
    """Return the graph of a loss, with what is written into tensors of it."""
    nodes = list(graph_of(loss))
    known = {id(v) for v in nodes}
    touched = known | {id(v) for node in nodes for v in carriers(node)}  # new tensors as well
    for event, changed in changes:
        if id(memory_of(changed)) in touched:
            new = [v for a in event.args for v in graph_of(a) if id(v) not in known]
            known.update(id(v) for v in new)
            nodes += new
    return nodes


def _saved(graphs: Graphs, nodes: list[Value]) -> dict[int, list[Result]]:
    """Return the operations of a graph by the tensors that they have saved."""
    found: dict[int, list[Result]] = {}
    for node in nodes:
        if isinstance(node, Result):
            for saved in _saved_by(graphs, node):
                found.setdefault(id(memory_of(saved)), []).append(node)
    return found


def _saved_by(graphs: Graphs, node: Result) -> Iterator[Value]:
    """Yield the tensors that an operation keeps for its gradient, for certain."""
    if node.gradients is not Answer.YES or is_cut(node):
        return
    if node.maker == "()" and runs_weights(node) is Answer.YES:
        if len(node.args) == 1 and not node.kwargs and not graphs.may_be_frozen(node):
            yield node.args[0]
        return
    operation = operation_of(node)
    if operation is None or not operation.operands or _is_foreign(node):
        return
    first = operation.operands[0]
    if operation.name in SAVES_OUTPUT and is_node(node) and not is_in_place(node.maker):
        yield node
    elif _saves_input(operation) and has_history(first) is Answer.YES:
        yield first
    elif operation.name in SAVES_BOTH and len(operation.operands) == 2:
        yield from (v for v, other in (operation.operands, operation.operands[::-1])
                    if has_history(other) is Answer.YES and is_node(v))  # fmt: skip


def _is_foreign(node: Result) -> bool:
    return node.maker.split(".", 1)[0] not in ("", "torch", "operator") and node.maker != "()"


def _saves_input(operation: Operation) -> bool:
    """Tell whether a gradient is computed from the input; that of `x ** 1` is not."""
    if operation.name != "pow":
        return operation.name in SAVES_INPUT
    exponent = constant(operation.operands[1]) if len(operation.operands) > 1 else None
    return isinstance(exponent, (int, float)) and exponent not in (0, 1)


def _lies_between(
    graphs: Graphs, saver: Result, change: ProgramEvent, backward: ProgramEvent
) -> bool:
    """Tell whether a change comes after the operation and before the backward through it."""
    made = graphs.made_at(saver)
    if made is None or made.result is change.result or change.gradients is not Answer.YES:
        return False
    known = {id(g) for g in (*made.guards, *backward.guards)}
    is_certain = all(id(g) in known for g in change.guards)
    return (
        made.order < change.order < backward.order
        and is_certain
        and not _is_loop_later(made, change)
    )


def _is_loop_later(made: ProgramEvent, change: ProgramEvent) -> bool:
    """Tell whether a change lies in a loop that the operation is outside of."""
    return any(turn not in made.turns for turn in change.turns)


def _takes_view(layer: Result, owner: Value) -> bool:
    """Tell whether a layer ran on a part of a tensor that shares its memory."""
    for value in layer.args:
        current: Value = value
        for _ in range(12):
            if current is owner:
                return current is not value
            operation = operation_of(current)
            if isinstance(current, Part):
                current = current.of
            elif operation is not None and operation.name in SHARES and operation.operands:
                current = operation.operands[0]
            else:
                break
    return False


def overwritten_views(story: Story) -> Iterator[Overwritten]:
    """Yield where a part of a tensor is written that a layer with weights ran on a view of."""
    for event in story.events:
        owner = event.receiver
        if event.act is not EventForm.STORE or event.name != "[]":
            continue
        if not isinstance(owner, Result) or event.gradients is not Answer.YES:
            continue
        layer = next((r for r in runs_reached(event.args[0]) if _takes_view(r, owner)), None)
        if layer is not None and feeds_backward(story, owner):
            yield Overwritten(event, layer, is_view=True)


def all_overwritten(story: Story) -> Iterator[Overwritten]:
    """Yield every change in place of what backward needs."""
    yield from overwritten_views(story)
    yield from overwritten(story)
