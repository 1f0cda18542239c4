from itertools import islice

from traindx.analysis.program.training.claims import (
    counter_of,
    each_place,
    finding,
    insert_at_top,
    is_same_scope,
)
from traindx.analysis.program.training.sampler_epochs import epochs_not_set
from traindx.examples import make_run, template
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
    for made, loop in islice(each_place(run, epochs_not_set, lambda found: found), 1):
        name, counter, epochs = made.called(), counter_of(loop.run.site), loop.run.site
        can_patch = name and counter and is_same_scope(made, epochs)
        yield finding(
            "set_epoch of the sampler is not called in the loop: every epoch has the same order",
            (made, "a sampler that shuffles by epoch"),
            (epochs, "epochs run here without set_epoch"),
            at=epochs,
            patch=insert_at_top(epochs, f"{name}.set_epoch({counter})") if can_patch else None,
        )


_PROGRAM = """
from torch.utils.data.distributed import DistributedSampler

sampler = {sampler}
train_loader = DataLoader(data, {loaded})
for epoch in range(3):
    {top}
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
_USUAL = {"top": "model.train()", "sampler": "DistributedSampler(data)"}
_program = template(_PROGRAM, **_USUAL, loaded="batch_size=32, sampler=sampler")
_BATCHES = "batch_sampler=torch.utils.data.BatchSampler(sampler, 32, False)"
_batches = template(_PROGRAM, **_USUAL, loaded=_BATCHES)
_SET = "train_loader.sampler.set_epoch(epoch)"
_SET_IF_DISTRIBUTED = f"if isinstance(train_loader.sampler, DistributedSampler): {_SET}"

FIRES = {
    "never set": _program(),
    "made anew in one order": _program("sampler = DistributedSampler(data)"),
    "in a batch sampler": _batches(),
    "of the loader's own sampler, beside a batch sampler": _batches(_SET_IF_DISTRIBUTED),
    "of a sampler that has none": _batches(
        f"if hasattr(train_loader.sampler, 'set_epoch'): {_SET}"
    ),
    "chosen by a condition": _program(
        sampler="(RandomSampler if rank < 0 else DistributedSampler)",
        loaded="batch_size=32, sampler=sampler(data)",
    ),
}

_CALLING = _program("from engine import before_epoch; before_epoch(train_loader, epoch)")
_ELSEWHERE = {
    "train.py": _CALLING.sources[0].text,
    "engine.py": "def before_epoch(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n",
}
_ANEW = """sampler = DistributedSampler(data, seed=epoch)
    train_loader = DataLoader(data, batch_size=32, sampler=sampler)"""

SILENT = {
    "near miss: set through the batch sampler": _batches(
        "train_loader.batch_sampler.sampler.set_epoch(epoch)"
    ),
    "near miss: set where the loader has it": _program(_SET_IF_DISTRIBUTED),
    "near miss: set in another file": make_run(sources=_ELSEWHERE),
    "near miss: made anew for every epoch": _program(_ANEW, sampler="None"),
    "near miss: set by its attribute": _program("sampler.epoch = epoch"),
    "near miss: handed on with the epoch": _program("hooks.start(train_loader, epoch)"),
    "set": _program("sampler.set_epoch(epoch)"),
    "near miss: no shuffling": _program(sampler="DistributedSampler(data, shuffle=False)"),
    "near miss: set through the loader": _program(_SET),
}
