"""Models that are linear in their input."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.steps.linear_models import LinearModel, linear_model
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of

STEP = """
x: batch/0 (8, 4)
w: parameter:a.weight (16, 4)
v: parameter:b.weight (3, 16)
h (8, 16) = mm(x, w)
g (8, 16) = {between}
o (8, 3) = mm(g, v)
loss () = mean(o)
"""


def found(between: str, *, has_output: bool = True) -> LinearModel | None:
    step = step_of(STEP.format(between=between))
    outputs = ([t.shape for t in step.tensors].index((8, 3)),) if has_output else ()
    (one,) = steps_of(captured(replace(step, outputs=outputs)))
    return linear_model(one)


def test_sums_and_scales_are_linear() -> None:
    for between in ("add(h, h)", "mean(h)", "native_dropout(h)", "clone(h)"):
        model = found(between)
        assert model is not None and [a.name for a in model.layers] == ["mm", "mm"]


def test_what_is_not_linear_or_not_known() -> None:
    for between in ("relu(h)", "mul(h, h)", "native_batch_norm(h)", "div(x, h)"):
        assert found(between) is None
    assert found("clone(h)", has_output=False) is None
