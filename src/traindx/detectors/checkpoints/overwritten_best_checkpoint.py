"""The file of the best epoch is written over, or by a test that does not ask for the best."""

from traindx.analysis.program.training.best_files import OverwrittenBest, overwritten_best
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CLAIMS = {
    "same file": "The best checkpoint and a later one go to the same file",
    "never updated": "The best score is never updated, so later epochs overwrite the best weights",
    "always updated": "The best score is replaced in every epoch, not only by a better one",
}


@detector(needs=("source",), suggests=("best-weights-overwritten",))
def check(run: Run) -> Findings:
    """The weights of the best epoch are saved, and overwritten by those of another.

    ## What it detects
    A checkpoint that is saved where a score is better than the best so far, to a file that is
    written again without that test, in the same loop or behind it; or by a test that lets other
    epochs write too, for the best score is not kept, or kept of the last epoch.

    ## Why it matters
    What is loaded as the best model at the end is the last one, and nothing says so.

    ## What to do
    Use two files, `best.pt` and `last.pt`, and set the best score where the best is saved.

    ## When it is wrong
    A file whose name has the epoch in it is another one each time. Where the best weights are
    loaded before the file is written again it holds the best still; both are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in overwritten_best(story):
            place = (found.save.event.node, found.test.site.node)
            if place not in seen:
                seen.add(place)
                yield _finding(found)


def _finding(found: OverwrittenBest) -> Finding:
    again = [] if found.again is None else [cite(found.again, "written again, best or not")]
    return finding(
        CLAIMS[found.reason],
        "best-weights-overwritten",
        found.place,
        cite(found.test.site, "the best weights are saved under this test"),
        *again,
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
best = 0.0

def save(path):
    torch.save(model.state_dict(), path)

for epoch in range(9):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    score = evaluate(model)
{keep}
{end}
model.load_state_dict(torch.load("best.pt"))
"""
_KEEP = """
    if score > best:
        best = score
        {save}
    {then}
"""
_BARE = 'torch.save(model.state_dict(), "best.pt")'


def _program(
    save: str = 'save("best.pt")', then: str = "", end: str = "", keep: str = _KEEP
) -> Run:
    text = _PROGRAM.format(keep=keep.format(save=save, then=then), end=end)
    return make_run(sources={"train.py": text})


FIRES = {
    "every epoch writes the same file": _program(_BARE, _BARE),
    "by a function": _program(then='save("best.pt")'),
    "behind the loop": _program(end='save("best.pt")'),
    "the best score stays zero": _program(keep="    if score > best:\n        {save}"),
    "the best score is that of the last epoch": _program(
        keep="    if score > best:\n        {save}\n    best = score"
    ),
}
SILENT = {
    "near miss: another file for the last epoch": _program(then='save("last.pt")'),
    "near miss: the best is loaded before": _program(
        end='model.load_state_dict(torch.load("best.pt"))\nsave("best.pt")'
    ),
    "the epoch in the name": _program('save(f"{epoch}.pt")', 'save(f"{epoch}.pt")'),
    "the best by max": _program(
        keep="    if score > best:\n        {save}\n    best = max(best, score)"
    ),
}
