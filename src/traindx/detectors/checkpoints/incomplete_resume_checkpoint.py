from collections.abc import Iterator
from itertools import islice

from traindx.analysis.program.training.checkpoints import Saved, saves
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.incomplete_checkpoints import (
    restarted_schedules,
    without_moments,
    without_optimizer,
)
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.restoration import left_out
from traindx.examples import template
from traindx.registry import Evidence, Finding, Findings, Run, detector

CAUSE = "incomplete-checkpoint"


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
    found = (f for story in program.stories for f in _incomplete(program, story))
    yield from islice(found, 1)


def _incomplete(program: Program, story: Story) -> Iterator[Finding]:
    for save in without_optimizer(program, story):
        claim = "The checkpoint holds model and schedule, and no state of the optimizer"
        yield _saved(claim, save, "saved to go on from, without the optimizer")
    for save in without_moments(story):
        claim = "The checkpoint holds the param_groups of the optimizer, and not its moments"
        yield _saved(claim, save, "only param_groups is saved; `state` has the moments")
    for left in left_out(program, story):
        name = left.value.called("one of them")
        yield finding(
            f"Training goes on from a checkpoint without the state of `{name}`",
            (left.restored, "the state of something else is restored here"),
            *_leaves_it_out(left.save),
            at=left.value if left.save is None else left.save.deed,
        )
    for schedule in restarted_schedules(program, story):
        yield finding(
            f"Resuming restores the optimizer, and {schedule.kind} starts over",
            (schedule.made, "its state is neither saved nor restored"),
            *_leaves_it_out(next(iter(saves(story)), None)),
        )


def _saved(claim: str, save: Saved, says: str) -> Finding:
    return finding(claim, (save.deed, says))


def _leaves_it_out(save: Saved | None) -> tuple[Evidence, ...]:
    return () if save is None else (cite(save.deed, "the checkpoint leaves it out"),)


_PROGRAM = """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1{momentum:, momentum=0.9})
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    torch.save({{"model": model.state_dict(){schedule}{more:}}}, "last.pt")
"""
_program = template(_PROGRAM, schedule=', "scheduler": scheduler.state_dict()')
_tracked = template("""
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
    store = Store(net=net, opt=opt{more:})
    store.restore(path)
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        opt.step()
        sched.step()
    store.save(path)

fit(torch.nn.Linear(4, 1), loader, "last.pt")
""")

FIRES = {
    "groups of the optimizer": _program(
        more=', "optimizer": {"param_groups": optimizer.state_dict()["param_groups"]}'
    ),
    "groups, without a schedule": _program(
        more=', "groups": optimizer.param_groups, "epoch": epoch', schedule=""
    ),
    "model and schedule": _program(),
    "all but the schedule, by a registry": _tracked(),
}

SILENT = {
    "near miss: groups and state apart": _program(
        more=', "g": optimizer.param_groups, "s": optimizer.state_dict()["state"]'
    ),
    "near miss: the rate beside the whole state": _program(
        more=', "o": optimizer.state_dict(), "groups": optimizer.param_groups'
    ),
    "all of it, by a registry": _tracked(", sched=sched"),
    "all of it": _program(more=', "optimizer": optimizer.state_dict()'),
    "near miss: gathered from shards": _program(
        more=', "optimizer": FSDP.optim_state_dict(model, optimizer)'
    ),
    "near miss: the optimizer as a whole": _program(more=', "steps": optimizer'),
    "near miss: more is taken in": _program(more=", **rest"),
    "near miss: weights to use, not to go on from": _program(more=', "epoch": epoch', schedule=""),
    "near miss: an optimizer without a state": _program(momentum=""),
}
