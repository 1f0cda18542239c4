"""An optimizer runs with a learning rate of zero."""

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.schedules import (
    Schedule,
    count_of,
    pace_of,
    schedules_of,
)
from traindx.analysis.program.training.settings import is_zero
from traindx.analysis.program.training.step_sizes import (
    ParameterGroup,
    groups_of,
    stays_zero,
)
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

EARLY = 50  # steps; no run is meant to be over by then


@detector(needs=("source",), suggests=("lr-zero",))
def check(run: Run) -> Findings:
    """An optimizer is made with `lr=0`, or its schedule ends at zero within a few steps.

    ## What it detects
    A learning rate of 0, as a number or through names and settings, that no schedule, checkpoint or
    later assignment raises; and a `LambdaLR` whose factor is 0 for good after at most 50 steps,
    where it is stepped for every batch.

    ## Why it matters
    Every step multiplies the update by zero: training runs at full cost and changes nothing.

    ## What to do
    Give a learning rate: 1e-3 for Adam and 0.1 for SGD are where to start. Let a schedule end with
    the run.

    ## When it is wrong
    A one-cycle or cyclic schedule sets rates of its own and may raise it from zero; such an
    optimizer is left alone (one that multiplies the rate leaves it at zero). So is one whose
    parameters may come in groups with rates of their own, or that is handed to code out of sight.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in (*_made(story), *_ended(story)):
            if found.location not in seen:
                seen.add(found.location)
                yield found


def _made(story: Story) -> Findings:
    for event in story.events:
        name = event.name.rsplit(".", 1)[-1]
        is_arguments = name.endswith("TrainingArguments") and event.act is EventForm.CALL
        if is_arguments and is_zero(story, event.argument("learning_rate")):
            yield _finding(name, event)
    groups: dict[Result, list[ParameterGroup]] = {}
    for group in groups_of(story):
        groups.setdefault(group.optimizer, []).append(group)
    for optimizer, own in groups.items():
        are_zero = all(is_zero(story, group.given("lr")) for group in own)
        if are_zero and optimizer.site is not None and stays_zero(story, optimizer):
            yield _finding(own[0].kind, optimizer)


def _finding(name: str, made: ProgramEvent | Result) -> Finding:
    claim = f"`{name}` is made with a learning rate of 0"
    return finding(claim, "lr-zero", made, cite(made, "lr is 0 here"), is_symptom=True)


def _ended(story: Story) -> Findings:
    for schedule in schedules_of(story):
        end = schedule.ends_at
        if end is None or end == 0 or not _is_over_early(schedule, end):
            continue
        yield finding(
            f"{schedule.kind} sets the learning rate to 0 after {end} steps",
            "lr-zero",
            schedule.made,
            cite(schedule.made, f"its factor is 0 from step {end} on"),
            cite(schedule.steps[0], "and it is stepped for every batch"),
            is_symptom=True,
        )


def _is_over_early(schedule: Schedule, end: int) -> bool:
    """Tell whether a schedule is at its end long before the loop that steps it."""
    if end > EARLY or not schedule.steps or not schedule.updates:
        return False
    event = schedule.steps[0].event
    pace = pace_of(schedule.story, event)
    turns = count_of(Loop(schedule.story, event.loops[-1])) if event.loops else None
    if turns is not None and len(event.loops) == 1:
        return turns > 2 * end and pace is not Unit.EPOCHS
    return pace is Unit.BATCHES and len(event.loops) > 1


def _program(rate: str, after: str = "", held: str = "model.parameters()", more: str = "") -> Run:
    text = f"import torch\noptimizer = torch.optim.SGD({held}, lr={rate})\n{after}\n"
    return make_run(sources={"train.py": text, "engine.py": more})


_TRAIN = "from engine import train\ntrain(model, optimizer)"
_STEPS = "def train(model, optimizer):\n    optimizer.step()\n"
_WRITES = "def train(model, optimizer):\n    optimizer.param_groups[0]['lr'] = 0.1\n"

_FADES = """
import torch

def fit(net, loader, epochs):
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    fade = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: max(0.0, 1 - i / {steps}))
    for epoch in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            opt.step()
            fade.step()
"""

_OPTION = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0)
args = parser.parse_args()
{then}
net = torch.nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters(), lr=args.lr)
"""

FIRES = {
    "a schedule that is over after ten batches": make_run(
        sources={"train.py": _FADES.format(steps=10)}
    ),
    "zero by a setting": make_run(
        sources={
            "train.py": "import torch\nfrom dataclasses import dataclass\n@dataclass\n"
            "class Config:\n    lr: float = 0.0\ncfg = Config()\nnet = torch.nn.Linear(4, 2)\n"
            "opt = torch.optim.Adam(net.parameters(), lr=cfg.lr)\n"
        }
    ),
    "zero by default": make_run(sources={"train.py": _OPTION.format(then="pass")}),
    "zero": _program("0"),
    "zero as a float": _program("0.0"),
    "integer division of settings, with a schedule": make_run(
        sources={
            "train.py": _OPTION.replace('"--lr", type=float, default=0', '"--batch", default=32')
            .replace("args.lr", "0.1 * (args.batch // 256)")
            .format(then="pass")
            + "decay = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)\n"
        }
    ),
    "handed to what only steps": _program("0", _TRAIN, more=_STEPS),
    "groups without rates": _program(
        "0", held='[{"params": a.parameters()}, {"params": b.parameters()}]'
    ),
}

SILENT = {
    "near miss: a schedule of the length of a run": make_run(
        sources={"train.py": _FADES.format(steps=10_000)}
    ),
    "a rate": _program("0.1"),
    "near miss: zero stands for another": make_run(
        sources={"train.py": _OPTION.format(then="args.lr = args.lr or 0.1")}
    ),
    "near miss: replaced where it is zero": make_run(
        sources={"train.py": _OPTION.format(then="if args.lr == 0:\n    args.lr = rate_for(net)")}
    ),
    "near miss: a schedule raises it": _program(
        "0.0", "scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)"
    ),
    "near miss: a schedule that ends above zero": _program(
        "0.0", "s = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10, eta_min=1e-3)"
    ),
    "near miss: groups with their own rates": _program(
        "0", held='[{"params": a.parameters(), "lr": 0.1}, {"params": b.parameters(), "lr": 0.2}]'
    ),
    "near miss: groups out of sight": _program("0", held="groups_of(model)"),
    "near miss: written in another file": _program("0", _TRAIN, more=_WRITES),
    "near miss: handed out of sight": _program("0", "warm_up(optimizer, 0)"),
    "near miss: a rate from a checkpoint": _program("0", "optimizer.load_state_dict(saved)"),
    "near miss: written later": _program("0", "optimizer.param_groups[0]['lr'] = 0.1"),
}
