from traindx.analysis.program.training.claims import each_place, finding, program_of
from traindx.analysis.program.training.resumed_order import (
    lost_orders,
    overwritten_positions,
    restarted_counts,
)
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("data-order-lost-on-resume",))
def check(run: Run) -> Findings:
    """A checkpoint is taken in mid-epoch, and on resuming the data begin at their first batch.

    ## What it detects
    A program that saves its step among the batches of an epoch and goes on from that step, while
    the order of its data is the same at every start (a generator that is seeded anew, no shuffling)
    and nothing skips the batches that were seen or restores the generator. Or one that shuffles by
    the number of the epoch (`set_epoch`, a seed), and gives it the turns of the resumed loop. Or a
    sampler whose position is restored and set to 0 again as the first epoch begins.

    ## Why it matters
    The first examples of the epoch are trained on twice, the last ones never. A job that is
    restarted often sees little else than the beginning of its data.

    ## What to do
    Save the position in the epoch and the state of the generator, and skip what was seen; or use
    `StatefulDataLoader`, whose state says both.

    ## When it is wrong
    Checkpoints at the end of an epoch, batches that are drawn at random without an order, and data
    that are read from a stream are left alone; so is a program that hands its checkpoint on.
    """
    for lost in (x for story in program_of(run).stories for x in lost_orders(story)):
        yield finding(
            "The run resumes in the middle of an epoch, and its data begin at the first batch "
            "again",
            (lost.order, "the same order at every start"),
            (lost.checkpoint.deed, "a run goes on from here"),
            (lost.save, "and was saved in mid-epoch, without a position in the data"),
        )
        return
    for found in each_place(run, restarted_counts, lambda found: found.event.node):
        yield finding(
            "The order of an epoch is made of a number that starts at 0 again on resuming",
            (found.event, "counts the epochs of this launch, not those of the run"),
            (found.checkpoint.deed, "a run goes on from here"),
        )
    for found_at in each_place(run, overwritten_positions, lambda found: found.overwritten.node):
        yield finding(
            f"`{found_at.name}` is restored and set to 0 again before the data are read",
            (found_at.overwritten, "the resumed epoch begins at its first batch"),
            (found_at.restored, "the position that the checkpoint had"),
            at=found_at.overwritten,
        )


_PROGRAM = """
import os
from torch.utils.data import DataLoader, RandomSampler

order = torch.Generator().manual_seed(0)
loader = DataLoader(dataset, 16, {order})
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
step = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    step = saved["step"]
    {restore}

while step < 1000:
    for i, (x, y) in enumerate(loader):
        {skip}
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            torch.save({{"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "step": step{more}}}, "last.pt")
"""
_USUAL = {
    "order": "shuffle=True, generator=order", "restore": "pass", "skip": "pass", "more": "",
}  # fmt: skip
_program = template(_PROGRAM, **_USUAL)
_BY_HAND = _PROGRAM.replace(
    "    for i, (x, y) in enumerate(loader):\n",
    "    for rows in torch.randperm(len(data), generator=order).split(16):\n"
    "        x, y = data[rows], labels[rows]\n",
)
_BY_EPOCH = _PROGRAM.replace("        if step % 50 == 0:\n    ", "    if step:\n")

_SAMPLED = """
from torch.utils.data.distributed import DistributedSampler
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, 16, sampler=sampler)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
saved = torch.load("last.pt")
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
for {turn}:
    {order:sampler.set_epoch(i)}
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""
_EPOCHS = 'range(saved["epoch"], 9)'
_sampled = template(_SAMPLED, turn=f"i, epoch in enumerate({_EPOCHS})")

FIRES = {
    "the sampler is told the turns of this launch": _sampled(),
    "so is a seed": _sampled(
        turn='i in range(9 - saved["epoch"])', order="torch.manual_seed(7 + i)"
    ),
    "a generator that is seeded anew": _program(),
    "a sampler with such a generator": _program("sampler=RandomSampler(dataset, generator=order)"),
    "no shuffling": _program("shuffle=False"),
    "the global state is restored, the order has its own": _program(
        restore='torch.set_rng_state(saved["rng"])', more=', "rng": torch.get_rng_state()'
    ),
    "cut by hand": template(_BY_HAND, **_USUAL)(),
}

SILENT = {
    "near miss: the sampler is told the epoch": _sampled(order="sampler.set_epoch(epoch)"),
    "near miss: counted from the epoch on": _sampled(
        turn=f'i, epoch in enumerate({_EPOCHS}, saved["epoch"])'
    ),
    "near miss: turns on top of the epoch": _sampled(order='sampler.set_epoch(saved["epoch"] + i)'),
    "near miss: the first epochs are passed over": _sampled(
        turn="i in range(9)", order='if i < saved["epoch"]: continue\n    sampler.set_epoch(i)'
    ),
    "near miss: its state is restored": _program(
        restore='order.set_state(saved["order"])', more=', "order": order.get_state()'
    ),
    "near miss: batches that were seen are skipped": _program(
        skip="if i < step % len(loader):\n            continue"
    ),
    "near miss: skipped at once": _program(
        restore="from itertools import islice\n    loader = islice(loader, step, None)"
    ),
    "near miss: another seed": _program(restore="order.manual_seed(step)"),
    "near miss: at the end of an epoch": template(_BY_EPOCH, **_USUAL)(),
    "near miss: another order at every start": _program("shuffle=True"),
    "near miss: a sampler out of sight": _program("sampler=MySampler(dataset)"),
}
