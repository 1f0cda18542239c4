"""An optimizer is made with a learning rate of zero."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import argument, literal

RAISES_IT = ("param_groups", "lr_scheduler", "Scheduler", "scheduler", "set_lr", "adjust_lr")


@detector(needs=("source",), suggests=("lr-zero",))
def check(run: Run) -> Iterator[Finding]:
    """An optimizer of torch is made with `lr=0`.

    ## What it detects
    The literal 0 as the learning rate of an optimizer, in a file that knows no schedule and writes
    no learning rate later.

    ## Why it matters
    Every step multiplies the update by zero: training runs at full cost and changes nothing.

    ## What to do
    Give a learning rate: 1e-3 for Adam and 0.1 for SGD are where to start.

    ## When it is wrong
    A schedule may raise the rate from zero; files that mention one are left alone.
    """
    for module in project_of(run).training_modules:
        for call, name in module.calls():
            if not name.startswith("torch.optim.") or "lr_scheduler" in name:
                continue
            rate = literal(argument(call, "lr", 1))
            is_zero = isinstance(rate, (int, float)) and not isinstance(rate, bool) and rate == 0
            if not is_zero or any(word in module.text for word in RAISES_IT):
                continue
            yield Finding(
                claim=f"`{name.rsplit('.', 1)[-1]}` is made with a learning rate of 0",
                strength=Strength.STRONG,
                evidence=(module.cite(call, "lr is 0 here"),),
                shows="lr-zero",
                is_symptom=True,
                location=module.location(call),
            )


def _program(rate: str, after: str = "") -> Run:
    text = f"import torch\noptimizer = torch.optim.SGD(model.parameters(), lr={rate})\n{after}\n"
    return make_run(sources={"train.py": text})


FIRES = {"zero": _program("0"), "zero as a float": _program("0.0")}

SILENT = {
    "a rate": _program("0.1"),
    "near miss: a schedule raises it": _program(
        "0.0", "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)"
    ),
    "near miss: written later": _program("0", "optimizer.param_groups[0]['lr'] = 0.1"),
}
