"""A training step makes the host wait for the device again and again."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, source_text
from traindx.analysis.program.training.phases import Loop, is_every_turn
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

FORCED = {"torch.cuda.empty_cache": "empties the cache of the device",
          "torch.cuda.synchronize": "waits for the device",
          "gc.collect": "collects garbage"}  # fmt: skip
READS = (".item", ".cpu", ".numpy", ".tolist")
MANY = 3  # one read per step for the running loss is what everybody does


@detector(needs=("source",), suggests=("synchronisation-in-loop",))
def check(run: Run) -> Findings:
    """Every training step waits for the device, several times or by force.

    ## What it detects
    In every turn of the loop over batches: `torch.cuda.empty_cache()` or `synchronize()`, or three
    and more values read back with `.item()`, `.cpu()` or `.numpy()`, in code for CUDA; in the loop
    itself or in what it calls.

    ## Why it matters
    The host may run ahead of the device and hide its own work. Every read waits until the device
    has caught up; emptying the cache also makes every allocation slow again.

    ## What to do
    Read back every n steps, keep running sums on the device, and leave the cache alone.

    ## When it is wrong
    Large models hide it: with steps of a second a few waits cost nothing. Hence a weak remark.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for backward in story.does(Do.BACKWARD):
            event = backward.event
            if not event.loops or event.loops[-1].site.node in seen or event.by_framework:
                continue
            seen.add(event.loops[-1].site.node)
            if "cuda" in event.module.text:
                yield from _waits(Loop(story, event.loops[-1]), backward)


def _waits(loop: Loop, backward: Deed) -> Findings:
    turn = backward.event.turns[-1]
    calls = [e for e in loop.events if e.turns[-1:] == (turn,) and is_every_turn(e, backward.event)]
    forced = [e for e in calls if e.name in FORCED]
    reads = [e for e in calls if e.name in READS and not e.args and not _is_read_before(e)]
    if forced:
        what = FORCED[forced[0].name]
        yield _finding(forced[0], f"Every training step {what}")
    elif len(reads) >= MANY:
        yield _finding(
            reads[0], f"Every training step reads {len(reads)} values back from the device"
        )


def _is_read_before(event: ProgramEvent) -> bool:
    """Tell whether what is read was read back already: `x.cpu().numpy()` waits once."""
    return isinstance(event.receiver, Result) and event.receiver.maker in READS


def _finding(event: ProgramEvent, claim: str) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.WEAK,
        evidence=(cite(event, f"`{source_text(event)}` runs in every step"),),
        suggests={"synchronisation-in-loop": Strength.WEAK},
        location=event.location,
    )


_LOOP = """
import torch

model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (data, target) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    loss.backward()
    optimizer.step()
    {more}
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=more)})


_THREE = "a = loss.item(); b = norm.item(); c = accuracy.item()"

FIRES = {"the cache is emptied": _loop("torch.cuda.empty_cache()"), "three reads": _loop(_THREE)}

SILENT = {
    "near miss: one read": _loop("total += loss.item()"),
    "near miss: every hundred steps": _loop(f"if i % 100 == 0:\n        {_THREE}"),
}
