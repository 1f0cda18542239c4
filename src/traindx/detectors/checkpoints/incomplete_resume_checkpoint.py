"""A checkpoint to go on from leaves out the optimizer, or the schedule."""

from traindx.analysis.program.execution.values import Answer, Result, Value, depends_on
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.checkpoints import Saved, loads, saves, states_taken
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.restoration import LeftOut, has_momentum, left_out
from traindx.analysis.program.training.schedules import Schedule, schedules_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

TO_GO_ON = frozenset({Kind.SCHEDULER, Kind.SCALER})


@detector(needs=("source",), suggests=("incomplete-checkpoint",))
def check(run: Run) -> Findings:
    """A checkpoint is made to go on from, and leaves out the optimizer or the schedule.

    ## What it detects
    A saved dictionary with the state of a model and of its scheduler or gradient scaler, which
    serve only to go on training, while the program never takes the state of an optimizer that has
    one: momentum, or the moments of Adam; or saves only its `param_groups`. The other way round: a
    program that resumes model and optimizer from a checkpoint, and makes a schedule whose state it
    neither saves nor restores. Of several models and optimizers, as a GAN has, one whose state is
    never taken.

    ## Why it matters
    A run that goes on from it takes its first steps without momentum, and Adam with moments of
    zero: the loss jumps, and may not come back.

    ## What to do
    Add `"optimizer": optimizer.state_dict()`, and load it again.

    ## When it is wrong
    If the framework saves the optimizer in a way of its own (`accelerator.save_state`), nothing is
    missing; programs that call such are left alone. So are those that put an optimizer into a file
    in any other way: whole, or by a function that gathers its state (`FSDP.optim_state_dict`).
    """
    program = program_of(run)
    taken = states_taken(program)
    for story in program.stories:
        if not taken & {Kind.OPTIMIZER, Kind.UNKNOWN}:
            for save in saves(story):
                if _leaves_out_optimizer(story, save):
                    yield _finding(save)
                    return
        cut = next((s for s in saves(story) if _cuts_optimizer(story, s)), None)
        if cut is not None:
            yield _cut(cut)
            return
        for left in left_out(program, story):
            yield _lost(left)
            return
        schedule = None if taken & {Kind.SCHEDULER, Kind.UNKNOWN} else _begins_again(story)
        if schedule is not None:
            yield _forgotten(story, schedule)
            return


def _leaves_out_optimizer(story: Story, save: Saved) -> bool:
    optimizers = story.made(Kind.OPTIMIZER)
    if Kind.MODEL not in save.kinds or not save.kinds & TO_GO_ON or not save.is_whole:
        return False
    if any(save.holds(o) and not _is_through_schedule(save, o) for o in optimizers):
        return False
    return bool(optimizers) and all(has_momentum(o) for o in optimizers)


def _cuts_optimizer(story: Story, save: Saved) -> bool:
    """Tell whether a checkpoint to go on from has an optimizer's options, and no moments."""
    if Kind.MODEL not in save.kinds or not save.is_whole:
        return False
    made = [o for o in story.made(Kind.OPTIMIZER) if has_momentum(o)]
    return any(save.has_groups_only(o) for o in made)


def _cut(save: Saved) -> Finding:
    return finding(
        "The checkpoint holds the param_groups of the optimizer, and not its moments",
        "incomplete-checkpoint",
        save.deed,
        cite(save.deed, "only param_groups is saved; `state` has the moments"),
        is_symptom=True,
    )


def _is_through_schedule(save: Saved, optimizer: Value) -> bool:
    """Tell whether a checkpoint only has an optimizer because a schedule was made for it."""
    content = save.deed.subject
    values = content.fields.values() if content is not None else ()
    states = [v for v in values if isinstance(v, Result) and v.maker == ".state_dict"]
    others = [v for v in values if not any(v is s for s in states)]
    return not any(depends_on(v, optimizer) for v in others)


def _begins_again(story: Story) -> Schedule | None:
    """A schedule that counts steps and starts at the first again when all else is resumed."""
    for loaded in loads(story):
        subjects = [d.subject for d in loaded.restored]
        if not any(story.is_kind(s, Kind.OPTIMIZER) for s in subjects) or loaded.is_open:
            continue
        for schedule in schedules_of(story):
            is_own = any(s is schedule.optimizer for s in subjects)
            if is_own and _is_stepped_from_zero(story, schedule):
                return schedule
    return None


def _is_stepped_from_zero(story: Story, schedule: Schedule) -> bool:
    """Tell whether nothing tells a schedule where it is."""
    if "last_epoch" in schedule.made.kwargs or not schedule.steps or not schedule.updates:
        return False
    if any(d.subject is schedule.made for d in story.does(Do.LOAD_STATE)):
        return False
    is_ahead = schedule.steps[0].event.order < schedule.updates[0].event.order
    return not is_ahead and story.escapes(schedule.made) is Answer.NO


def _finding(save: Saved) -> Finding:
    return finding(
        "The checkpoint holds model and schedule, and no state of the optimizer",
        "incomplete-checkpoint",
        save.deed,
        cite(save.deed, "saved to go on from, without the optimizer"),
        is_symptom=True,
    )


def _lost(left: LeftOut) -> Finding:
    name = left.value.called("one of them")
    saved = [] if left.save is None else [cite(left.save.deed, "the checkpoint leaves it out")]
    return finding(
        f"Training goes on from a checkpoint without the state of `{name}`",
        "incomplete-checkpoint",
        left.value if left.save is None else left.save.deed,
        cite(left.restored, "the state of something else is restored here"),
        *saved,
        is_symptom=True,
    )


def _forgotten(story: Story, schedule: Schedule) -> Finding:
    save = next((s for s in saves(story)), None)
    saved = [] if save is None else [cite(save.deed, "the checkpoint leaves it out")]
    return finding(
        f"Resuming restores the optimizer, and {schedule.kind} starts over",
        "incomplete-checkpoint",
        schedule.made,
        cite(schedule.made, "its state is neither saved nor restored"),
        *saved,
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1{momentum})
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    torch.save({saved}, "last.pt")
"""
_BOTH = '{"model": model.state_dict(), "scheduler": scheduler.state_dict()}'


def _program(saved: str, momentum: str = ", momentum=0.9") -> Run:
    text = _PROGRAM.replace("{saved}", saved).replace("{momentum}", momentum)
    return make_run(sources={"train.py": text})


_TRACKED = """
import torch

class Store:
    def __init__(self, **parts):
        self.parts = parts

    def save(self, path):
        torch.save({{name: part.state_dict() for name, part in self.parts.items()}}, path)

    def restore(self, path):
        held = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(held[name])

def fit(net, loader, path):
    opt = torch.optim.AdamW(net.parameters())
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=9 * len(loader))
    store = Store(net=net, opt=opt{more})
    store.restore(path)
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        opt.step()
        sched.step()
    store.save(path)

fit(torch.nn.Linear(4, 1), loader, "last.pt")
"""

FIRES = {
    "groups of the optimizer": _program(
        _BOTH[:-1] + ', "optimizer": {"param_groups": optimizer.state_dict()["param_groups"]}}'
    ),
    "groups, without a schedule": _program(
        '{"model": model.state_dict(), "groups": optimizer.param_groups, "epoch": epoch}'
    ),
    "model and schedule": _program(_BOTH),
    "all but the schedule, by a registry": make_run(sources={"train.py": _TRACKED.format(more="")}),
}

SILENT = {
    "near miss: groups and state apart": _program(
        _BOTH[:-1] + ', "g": optimizer.param_groups, "s": optimizer.state_dict()["state"]}'
    ),
    "near miss: the rate beside the whole state": _program(
        _BOTH[:-1] + ', "o": optimizer.state_dict(), "groups": optimizer.param_groups}'
    ),
    "all of it, by a registry": make_run(
        sources={"train.py": _TRACKED.format(more=", sched=sched")}
    ),
    "all of it": _program(_BOTH[:-1] + ', "optimizer": optimizer.state_dict()}'),
    "near miss: gathered from shards": _program(
        _BOTH[:-1] + ', "optimizer": FSDP.optim_state_dict(model, optimizer)}'
    ),
    "near miss: the optimizer as a whole": _program(_BOTH[:-1] + ', "steps": optimizer}'),
    "near miss: more is taken in": _program(_BOTH[:-1] + ", **rest}"),
    "near miss: weights to use, not to go on from": _program(
        '{"model": model.state_dict(), "epoch": epoch}'
    ),
    "near miss: an optimizer without a state": _program(_BOTH, ""),
}
