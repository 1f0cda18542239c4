"""The operation of a step that made the first NaN or infinity on the way to its loss."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.steps.step_graph import RESHAPES, Act, Step, TensorNode

# puts a value in on purpose, or reads memory that is yet to be filled
FILLS = frozenset(
    {"masked_fill", "where", "full", "full_like", "fill", "scatter", "index_put", "new_full",
     "masked_scatter", "constant_pad_nd", "triu", "tril", "empty", "empty_like", "copy"}
)  # fmt: skip
# of a row that is -inf throughout they give NaN; the -inf itself was meant
MASKED = frozenset({"softmax", "log_softmax", "safe_softmax", "logsumexp"})


def origins(step: Step) -> Iterator[Act]:
    """Yield the operations that gave NaN or infinity from numbers, the first one first."""
    waiting = [n for n in step.losses if n.facts.nonfinite]
    seen: set[TensorNode] = set(waiting)
    found: set[Act] = set()
    while waiting:
        act = waiting.pop().maker
        if act is None:
            continue
        broken = [n for n in act.inputs if n.facts.nonfinite]
        if not broken and act.name not in FILLS and act.name not in RESHAPES - {"to"}:
            found.add(act)
        fresh = [n for n in broken if n not in seen]
        seen.update(fresh)
        waiting += fresh
    yield from sorted(found, key=lambda a: a.number)


def is_masked_later(step: Step, act: Act) -> bool:
    """Tell whether what an operation made goes through a softmax, where -inf is a mask."""
    results = set(act.outputs)
    return any(
        n.facts.nonfinite and n.ancestors & results
        for later in step.named(*MASKED)
        for n in later.inputs
    )


def are_weights_sound(step: Step, most: float) -> bool:
    """Tell whether every parameter that takes part is finite, and none is larger than that."""
    return all(
        not n.facts.nonfinite and not max(abs(n.facts.low), abs(n.facts.high)) > most
        for n in step.nodes
        if n.is_parameter
    )


def is_mean_of_nothing(act: Act) -> bool:
    """Tell whether a quotient is 0 / 0 of whole tensors: a sum over nothing, by its count."""
    given = [n.facts for n in act.inputs]
    return act.name == "div" and bool(given) and all(f.low == f.high == 0.0 for f in given)
