from traindx.analysis.program.training.best_files import overwritten_best
from traindx.analysis.program.training.claims import cite, each_place, finding
from traindx.examples import template
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
    places = each_place(run, overwritten_best, lambda f: (f.save.event.node, f.test.site.node))
    for found in places:
        again = [] if found.again is None else [cite(found.again, "written again, best or not")]
        yield finding(
            CLAIMS[found.reason],
            (found.test.site, "the best weights are saved under this test"),
            *again,
            at=found.place,
        )


_PROGRAM = """
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
    return template(_PROGRAM)(keep=keep.format(save=save, then=then), end=end)


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
