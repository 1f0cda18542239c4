"""The learning-rate schedule is stepped at the wrong time or pace."""

from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.metric_directions import Metric
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.schedules import (
    Schedule,
    count_of,
    pace_of,
    rounds_of,
    schedules_of,
)
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

FEW_BATCHES = 300  # fewer than one epoch of most data; no schedule is meant to end there
SMALL = 1e-6  # of the first rate: nothing is learned with that


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Findings:
    """The learning-rate schedule is stepped per batch where it counts epochs, or the reverse.

    ## What it detects
    A scheduler whose length is the number of epochs (`T_max=epochs`, `step_size=epochs // 2`) and
    that is stepped for every batch; one that falls so steeply (StepLR every 7 steps by 0.1) that
    stepped for every batch it is over within a few hundred batches; one that counts batches
    (OneCycleLR, CyclicLR, a LambdaLR over steps) and is stepped once per epoch, by hand or by
    Lightning; one that is stepped for every batch and for every epoch as well; and one that is
    stepped before its optimizer. One of an optimizer that another has replaced, one that is made
    again in every epoch, and a ReduceLROnPlateau that is told an accuracy where it waits for a
    number that falls, or a loss with `mode="max"`.

    ## Why it matters
    Counted in the wrong unit the rate falls to its end within the first epochs, or never moves.

    ## What to do
    Step it in the loop whose unit its length was given in.

    ## When it is wrong
    A variable called `epochs` that really counts steps misleads this; so does a schedule that is
    stepped out of sight. Loops over epochs without batches in them, and a step that is told where
    it is, `step(epoch + i / n)`, are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for schedule in schedules_of(story):
            fault = _fault(schedule)
            if fault is None or schedule.made.site is None:
                continue
            step, why = fault
            place = schedule.made if step.event.by_framework else step
            if schedule.made.site.node in seen:
                continue
            seen.add(schedule.made.site.node)
            yield finding(
                f"The learning rate is off its schedule: {why}",
                "lr-schedule-misuse",
                place,
                cite(step, "it is stepped here"),
                cite(schedule.made, "the schedule is made here"),
            )


def _fault(schedule: Schedule) -> tuple[Deed, str] | None:
    watched, kind = schedule.watched, schedule.kind
    if watched is not None and schedule.wants not in (None, watched[1]):
        wanted = "falls" if schedule.wants is Metric.LOSS else "rises"
        return watched[
            0
        ], f"{kind} waits for a number that {wanted} and is given {watched[1].value}"
    if schedule.replaced is not None:
        return schedule.steps[0], f"{kind} sets the rate of an optimizer that is never stepped"
    if not schedule.updates:
        return None
    if schedule.made_anew is not None:
        return schedule.made_anew, f"{kind} is made anew in every turn, and begins again"
    if schedule.unwaited is not None:
        return schedule.unwaited, f"{kind} counts updates and is stepped for every batch"
    for step in schedule.steps:
        why = _wrong_pace(schedule, step)
        if why:
            return step, why
    return _twice(schedule) or _ahead(schedule)


def _wrong_pace(schedule: Schedule, step: Deed) -> str:
    """Why a step comes too often, or too seldom."""
    update = schedule.updates[0]
    if step.event.guards and not _is_alike(step, update):
        return ""
    pace, kind = pace_of(schedule.story, step.event), schedule.kind
    around = rounds_of(step.event)
    is_inner = len(around) > 1
    if pace is Unit.BATCHES and is_inner:
        if schedule.unit is Unit.EPOCHS:
            return f"{kind} counts epochs and is stepped for every batch"
        steps = schedule.steps_to(SMALL)
        if steps < FEW_BATCHES:
            return f"stepped for every batch, {kind} falls a millionfold in {steps:.0f} batches"
    if pace is Unit.STEPS:
        steps = schedule.steps_to(SMALL)
        turns = count_of(Loop(schedule.story, around[-1]))
        if turns is not None and turns > 2 * steps:
            return f"{kind} falls a millionfold in {steps:.0f} of {turns} steps"
    is_outer = len(around) < len(rounds_of(update.event))
    if pace is Unit.EPOCHS and is_outer and _counts_batches(schedule):
        return f"{kind} counts batches and is stepped once per epoch"
    return ""


def _counts_batches(schedule: Schedule) -> bool:
    is_default = schedule.kind == "CyclicLR" and not schedule.lengths  # 2000 steps
    return is_default or schedule.unit is Unit.BATCHES


def _is_alike(step: Deed, update: Deed) -> bool:
    """Tell whether schedule and optimizer are stepped under the same conditions."""
    own = [(g.site.node, g.holds) for g in step.event.guards]
    return own == [(g.site.node, g.holds) for g in update.event.guards]


def _twice(schedule: Schedule) -> tuple[Deed, str] | None:
    plain = [s for s in schedule.steps if not s.event.guards]
    paces = {pace_of(schedule.story, s.event) for s in plain}
    if len(plain) == 2 and paces == {Unit.BATCHES, Unit.EPOCHS}:
        what = f"{schedule.kind} is stepped for every batch and once more for every epoch"
        return plain[0], what
    return None


def _ahead(schedule: Schedule) -> tuple[Deed, str] | None:
    """A step that comes before the optimizer's in every turn skips the first rate."""
    step = next(iter(schedule.steps), None)
    update = schedule.updates[0]
    if step is None or step.event.order > update.event.order or not step.event.loops:
        return None
    around = [x.site.node for x in rounds_of(update.event)]
    own = [x.site.node for x in rounds_of(step.event)]
    if own != around[: len(own)] or not _is_alike(step, update):
        return None
    return step, f"{schedule.kind} is stepped before its optimizer, so the first rate is skipped"


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.{scheduler}
for epoch in range(epochs):
    for data, target in loader:
        optimizer.zero_grad()
        criterion(model(data), target).backward()
        optimizer.step()
{inner}
{outer}
"""
_COSINE = "CosineAnnealingLR(optimizer, T_max=epochs)"
_ONE_CYCLE = "OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))"


def _loop(scheduler: str, *, inner: str = "", outer: str = "") -> Run:
    inner, outer = inner and f"        {inner}", outer and f"    {outer}"
    text = _LOOP.format(scheduler=scheduler, inner=inner, outer=outer)
    return make_run(sources={"train.py": text})


_FACTORY = """
from functools import partial
import torch

def learn(batch, net, opt, sched):
    x, y = batch
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    {each}

def run(net, batches, rounds=30):
    opt = torch.optim.AdamW(net.parameters())
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=rounds)
    step = partial(learn, net=net, opt=opt, sched=sched)
    for _ in range(rounds):
        for batch in batches:
            step(batch)
        {after}
"""
_LIGHTNING = """
import lightning as L
import torch
from torch import nn

class Classifier(L.LightningModule):
    def __init__(self, total_steps):
        super().__init__()
        self.fc, self.total_steps = nn.Linear(4, 3), total_steps

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.fc(x), y)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1 - i / self.total_steps)
        return {{"optimizer": opt, "lr_scheduler": {{"scheduler": sched{more}}}}}
"""

_MILESTONES = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=90)
args = parser.parse_args()
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.MultiStepLR(opt, [{milestones}], gamma=0.1)
for _ in range(args.rounds):
    for x, y in train_loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        decay.step()
"""

_PLATEAU = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer{mode})
for epoch in range(10):
    right = total = 0
    for x, y in train_loader:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum().item()
        total += loss.item()
    scheduler.step({metric})
"""


def _plateau(metric: str, mode: str = "") -> Run:
    return make_run(sources={"train.py": _PLATEAU.format(metric=metric, mode=mode)})


_ACCURACY = "right / len(train_set)"


FIRES = {
    "an accuracy that should rise": _plateau(_ACCURACY),
    "a loss that should rise": _plateau("total / len(train_loader)", ', mode="max"'),
    "of an optimizer that was replaced": _loop(
        _COSINE + "\noptimizer = torch.optim.Adam(model.parameters())", outer="scheduler.step()"
    ),
    "milestones in epochs, stepped for every batch": make_run(
        sources={"train.py": _MILESTONES.format(milestones="30, 60, 80")}
    ),
    "a length in turns of the loop, stepped by a function": make_run(
        sources={"train.py": _FACTORY.format(each="sched.step()", after="")}
    ),
    "Lightning steps it once per epoch": make_run(sources={"model.py": _LIGHTNING.format(more="")}),
    "before its optimizer": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler=_COSINE.replace("epochs", "total"), inner="", outer=""
            ).replace(
                "        optimizer.step()", "        scheduler.step()\n        optimizer.step()"
            )
        }
    ),
    "a steep schedule for every batch": _loop(
        "StepLR(optimizer, step_size=7, gamma=0.1)", inner="scheduler.step()"
    ),
    "for every batch and every epoch": _loop(
        "LambdaLR(optimizer, warm_up)", inner="scheduler.step()", outer="scheduler.step()"
    ),
    "cosine over epochs, per batch": _loop(_COSINE, inner="scheduler.step()"),
    "a stride in epochs, per batch": _loop(
        "StepLR(optimizer, step_size=args.epochs // 2, gamma=0.1)", inner="scheduler.step()"
    ),
    "one cycle, per epoch": _loop(_ONE_CYCLE, outer="scheduler.step()"),
    "long cycles by default, per epoch": _loop(
        "CyclicLR(optimizer, 1e-4, 0.05)", outer="scheduler.step()"
    ),
}

_PHASES = """
import torch
from torch.utils.data import DataLoader, random_split

PARTS = ("train", "val")
parts = dict(zip(PARTS, random_split(data, [400, 100])))
loaders = {p: DataLoader(d, batch_size=25) for p, d in parts.items()}
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.3)
for epoch in range(5):
    for part in PARTS:
        for x, y in loaders[part]:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if part == "train":
                loss.backward()
                optimizer.step()
        if part == "train":
            scheduler.step()
"""

SILENT = {
    "near miss: an accuracy that may rise": _plateau(_ACCURACY, ', mode="max"'),
    "near miss: an error rate": _plateau("1 - " + _ACCURACY),
    "near miss: a loss that falls": _plateau("total / len(train_loader)"),
    "near miss: once per epoch, in a loop over the names of the parts": make_run(
        sources={"train.py": _PHASES}
    ),
    "near miss: milestones in batches": make_run(
        sources={"train.py": _MILESTONES.format(milestones="30_000, 60_000")}
    ),
    "near miss: steps of the decay, from the settings": _loop(
        "StepLR(optimizer, step_size=args.lr_decay_steps)", outer="scheduler.step()"
    ),
    "near miss: the size of a step, from the settings": _loop(
        'StepLR(optimizer, step_size=config["step_size"])', outer="scheduler.step()"
    ),
    "once per turn of the loop": make_run(
        sources={"train.py": _FACTORY.format(each="", after="sched.step()")}
    ),
    "near miss: Lightning steps it for every batch": make_run(
        sources={"model.py": _LIGHTNING.format(more=', "interval": "step"')}
    ),
    "near miss: epochs of the full batch, in a loop over runs": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler="CosineAnnealingLR(optimizer, T_max=epochs)",
                inner="        scheduler.step()",
                outer="",
            )
            .replace("epoch in range(epochs)", "run in range(10)")
            .replace("data, target in loader", "epoch in range(epochs)")
        }
    ),
    "near miss: fractions of an epoch": _loop(_COSINE, inner="scheduler.step(epoch + i / n)"),
    "near miss: one cycle in epochs": _loop(
        "OneCycleLR(optimizer, 0.1, total_steps=epochs)", outer="scheduler.step()"
    ),
    "near miss: short cycles in epochs": _loop(
        "CyclicLR(optimizer, 1e-4, 0.05, step_size_up=10)", outer="scheduler.step()"
    ),
    "near miss: a model after the other": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler=_COSINE, inner="        scheduler.step()", outer=""
            ).replace("data, target in loader", "model in models")
        }
    ),
    "near miss: steep, and once per epoch": _loop(
        "StepLR(optimizer, step_size=7, gamma=0.1)", outer="scheduler.step()"
    ),
    "near miss: steep over epochs, in a loop over folds": make_run(
        sources={
            "train.py": _LOOP.format(
                scheduler="StepLR(optimizer, step_size=7, gamma=0.1)",
                inner="        scheduler.step()",
                outer="",
            )
            .replace("epoch in range(epochs)", "fold in range(5)")
            .replace("data, target in loader", "epoch in range(40)")
        }
    ),
    "near miss: a slow fall for every batch": _loop(
        "ExponentialLR(optimizer, gamma=0.9995)", inner="scheduler.step()"
    ),
    "near miss: a long stride for every batch": _loop(
        "StepLR(optimizer, step_size=10_000, gamma=0.5)", inner="scheduler.step()"
    ),
    "cosine over epochs, per epoch": _loop(_COSINE, outer="scheduler.step()"),
    "near miss: a stride out of sight": _loop(
        "StepLR(optimizer, step_size=epochs * per_epoch // 2)", inner="scheduler.step()"
    ),
    "one cycle, per batch": _loop(_ONE_CYCLE, inner="scheduler.step()"),
    "near miss: cosine over all steps, per batch": _loop(
        "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))", inner="scheduler.step()"
    ),
}
