"""Models whose output is a linear function of their input, however many layers they have."""

from __future__ import annotations

from dataclasses import dataclass

from traindx.analysis.steps.step_graph import RESHAPES, Act, Step, TensorNode

LAYERS = frozenset({"mm", "addmm", "bmm", "baddbmm", "linear", "convolution"})
# linear in each of their inputs, so in the data if only one of them is made of data …
PRODUCTS = LAYERS | {"mul", "div"}
# … and linear in all of them together
SUMS = RESHAPES | {
    "add", "sub", "rsub", "neg", "mean", "sum", "cat", "stack", "native_dropout", "dropout",
    "constant_pad_nd", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
}  # fmt: skip
MANY = 3  # layers: of two, the width between them tells a factorisation from a hidden layer


@dataclass(frozen=True)
class LinearModel:
    """Layers with nothing but linear operations from the inputs through them to an output."""

    layers: tuple[Act, ...]
    output: TensorNode


def linear_model(step: Step) -> LinearModel | None:
    """Return the linear model of a step, if every output of its models is linear in the inputs."""
    data = _made_of(step.inputs, step)
    outputs = [n for n in step.outputs if n in data and n in step.learning]
    if not outputs:
        return None
    layers: dict[Act, None] = {}
    waiting, seen = list(outputs), set(outputs)
    while waiting:
        act = waiting.pop().maker
        if act is None:
            continue
        given = [n for n in act.inputs if n in data]
        if not _is_linear(act, given):
            return None
        if act.name in LAYERS and given:
            layers[act] = None
        fresh = [n for n in given if n not in seen]
        seen.update(fresh)
        waiting += fresh
    ordered = tuple(sorted(layers, key=lambda a: a.number))
    return LinearModel(ordered, outputs[0]) if _is_deep(ordered) else None


def _made_of(sources: tuple[TensorNode, ...], step: Step) -> set[TensorNode]:
    found = set(sources)
    for act in step.acts:
        if any(n in found for n in act.inputs):
            found.update(act.outputs)
    return found


def _is_linear(act: Act, given: list[TensorNode]) -> bool:
    if act.name in PRODUCTS:
        divides = act.name == "div" and len(act.inputs) > 1 and act.inputs[1] in given
        return len(given) <= 1 and not divides
    return act.name in SUMS


def _is_deep(layers: tuple[Act, ...]) -> bool:
    """Tell whether the layers after each other do more than to factor one matrix."""
    if len(layers) < 2:
        return False
    first, last = layers[0].output, layers[-1].output
    if first is None or last is None or last not in _after(first):
        return False
    chain = [a for a in layers if a.output is first or a.output in _after(first)]
    if len(chain) >= MANY:
        return True
    wide = first.shape[-1:], last.shape[-1:]
    return len(chain) == 2 and bool(wide[0] and wide[1]) and wide[0][0] > wide[1][0] > 0


def _after(node: TensorNode) -> set[TensorNode]:
    return _made_of((node,), node.step)
