"""A distributed sampler repeats the same order in every epoch."""

from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import (
    cite,
    counter_of,
    finding,
    insert_at_top,
    is_same_scope,
)
from traindx.analysis.program.training.phases import Loop
from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.sampler_epochs import epochs_not_set
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("sampler-epoch-not-set",))
def check(run: Run) -> Findings:
    """A DistributedSampler is used over epochs and its set_epoch is never called.

    ## What it detects
    A `DistributedSampler` that shuffles, of a loader that a loop over epochs trains from, where
    nothing calls `set_epoch` of the sampler; a call of `set_epoch` on the loader itself, which has
    no such method, does not count.

    ## Why it matters
    The sampler seeds its shuffle with the epoch. Without it every epoch has the same order and
    every rank sees the same share of the data for ever.

    ## What to do
    `sampler.set_epoch(epoch)` at the top of every epoch.

    ## When it is wrong
    Frameworks call it themselves; loops that they run are left alone. So is a sampler that is made
    anew with a seed for every epoch, or that is handed on to code out of sight.
    """
    for story in program_of(run).stories:
        for made, loop in epochs_not_set(story):
            yield _finding(made, loop)
            return


def _finding(made: Value, loop: Loop) -> Finding:
    name, counter = made.called(), counter_of(loop.run.site)
    can_patch = name and counter and is_same_scope(made, loop.run.site)
    return finding(
        "set_epoch of the sampler is not called in the loop: every epoch has the same order",
        "sampler-epoch-not-set",
        loop.run.site,
        cite(made, "a sampler that shuffles by epoch"),
        cite(loop.run.site, "epochs run here without set_epoch"),
        is_symptom=True,
        patch=insert_at_top(loop.run.site, f"{name}.set_epoch({counter})") if can_patch else None,
    )


_PROGRAM = """
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

sampler = DistributedSampler(data{options})
train_loader = DataLoader(data, batch_size=32, sampler=sampler)
for epoch in range(3):
    {top}
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def _program(top: str = "model.train()", options: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(top=top, options=options)})


_BATCHES = _PROGRAM.replace(
    "batch_size=32, sampler=sampler",
    "batch_sampler=torch.utils.data.BatchSampler(sampler, 32, False)",
)


def _batches(top: str) -> Run:
    return make_run(sources={"train.py": _BATCHES.format(top=top, options="")})


_CHOSEN = _PROGRAM.replace(
    "DistributedSampler(data{options})",
    "(RandomSampler if rank < 0 else DistributedSampler)",
).replace("sampler=sampler", "sampler=sampler(data)")

FIRES = {
    "never set": _program(),
    "made anew in one order": _program("sampler = DistributedSampler(data)"),
    "in a batch sampler": _batches("model.train()"),
    "of the loader's own sampler, beside a batch sampler": _batches(
        "if isinstance(train_loader.sampler, DistributedSampler): "
        "train_loader.sampler.set_epoch(epoch)"
    ),
    "of a sampler that has none": _batches(
        "if hasattr(train_loader.sampler, 'set_epoch'): train_loader.sampler.set_epoch(epoch)"
    ),
    "chosen by a condition": make_run(sources={"train.py": _CHOSEN.format(top="model.train()")}),
}

_ELSEWHERE = {
    "train.py": "from engine import before_epoch\n"
    + _PROGRAM.format(top="before_epoch(train_loader, epoch)", options=""),
    "engine.py": "def before_epoch(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n",
}
_ANEW = """sampler = DistributedSampler(data, seed=epoch)
    train_loader = DataLoader(data, batch_size=32, sampler=sampler)"""

SILENT = {
    "near miss: set through the batch sampler": _batches(
        "train_loader.batch_sampler.sampler.set_epoch(epoch)"
    ),
    "near miss: set where the loader has it": _program(
        "if isinstance(train_loader.sampler, DistributedSampler): "
        "train_loader.sampler.set_epoch(epoch)"
    ),
    "near miss: set in another file": make_run(sources=_ELSEWHERE),
    "near miss: made anew for every epoch": make_run(
        sources={
            "train.py": _PROGRAM.replace("sampler = DistributedSampler(data{options})", "").format(
                top=_ANEW
            )
        }
    ),
    "near miss: set by its attribute": _program("sampler.epoch = epoch"),
    "near miss: handed on with the epoch": _program("hooks.start(train_loader, epoch)"),
    "set": _program("sampler.set_epoch(epoch)"),
    "near miss: no shuffling": _program(options=", shuffle=False"),
    "near miss: set through the loader": _program("train_loader.sampler.set_epoch(epoch)"),
}
