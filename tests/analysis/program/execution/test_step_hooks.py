"""What an optimizer calls around its steps."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_program = template(
    """
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler()
def clip(optimizer, args, kwargs):
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
{hook}
for x, y in loader:
    nn.functional.mse_loss(net(x), y).backward()
    {step}
""",
    "hook",
    step="opt.step()",
)


@pytest.mark.parametrize(
    ("hook", "step", "expected"),
    [
        ("opt.register_step_pre_hook(clip)", "opt.step()", [Do.CLIP, Do.STEP]),
        ("opt.register_step_post_hook(clip)", "opt.step()", [Do.STEP, Do.CLIP]),
        ("opt.register_step_post_hook(clip)", "scaler.step(opt)", [Do.STEP, Do.CLIP]),
        ("opt.register_step_pre_hook(lambda o, a, k: clip(o, a, k))", "opt.step()",
         [Do.CLIP, Do.STEP]),
        ("pass", "opt.step()", [Do.STEP]),
    ],
)  # fmt: skip
def test_the_order_of_a_step(hook: str, step: str, expected: list[Do]) -> None:
    story, *_ = program_of(_program(hook, step=step)).stories
    found = [d.do for d in story.does(Do.CLIP, Do.STEP) if d.event.turns]
    assert found == expected * 2
