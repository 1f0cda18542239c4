"""Steps of a learning-rate schedule that come at the wrong time or in vain."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.missteps import missteps
from traindx.analysis.program.training.program import program_of
from traindx.examples import template

_program = template(
    """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.{made}
for epoch in range(20):
    for x, y in loader:
        opt.zero_grad()
        criterion(net(x), y).backward()
        opt.step()
        {batch}
    {epoch}
""",
    "made",
    batch="pass",
    epoch="pass",
)


@pytest.mark.parametrize(
    ("made", "at", "says"),
    [
        ("CosineAnnealingLR(opt, 20)", "batch", "CosineAnnealingLR counts epochs"),
        ("CosineAnnealingLR(opt, 20)", "epoch", None),
        ("StepLR(opt, 7)", "batch", "stepped for every batch, StepLR falls a millionfold"),
        ("StepLR(opt, 7000)", "batch", None),
        ("CyclicLR(opt, 1e-4, 0.1)", "epoch", "CyclicLR counts batches"),
        ("PolynomialLR(opt, len(loader))", "batch", "PolynomialLR is as long as one epoch"),
        ("OneCycleLR(opt, 0.1, len(loader) // 2)", "batch", "OneCycleLR is as long as one epoch"),
        ("PolynomialLR(opt, 20 * len(loader))", "batch", None),
        ("LinearLR(opt, 0.1, 1.0, len(loader))", "batch", None),
        ("LinearLR(opt, 1.0, 0, len(loader))", "batch", "LinearLR is as long as one epoch"),
    ],
)
def test_the_pace_of_a_step(made: str, at: str, says: str | None) -> None:
    (story,) = program_of(_program(made, **{at: "sched.step()"})).stories
    found = [m.says for m in missteps(story)]
    assert (found[0].startswith(says) if says else not found) and len(found) < 2


def test_a_schedule_that_is_stepped_twice() -> None:
    run = _program("LambdaLR(opt, warm_up)", batch="sched.step()", epoch="sched.step()")
    (found,) = missteps(program_of(run).stories[0])
    assert "once more for every epoch" in found.says
