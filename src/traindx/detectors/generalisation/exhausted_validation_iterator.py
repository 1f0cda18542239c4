from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.data import Role, use_of
from traindx.analysis.program.training.iterators import used_up
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("empty-validation",))
def check(run: Run) -> Findings:
    """Validation goes over a generator that was made once, and is empty from the second epoch on.

    ## What it detects
    A loop that evaluates a model, in every epoch, over one and the same iterator: a generator,
    `iter(loader)`, `zip(…)` or `map(…)` that is made before the epochs begin.

    ## Why it matters
    An iterator gives its elements once. From the second epoch on the loop has no turn: the score is
    0, NaN or that of the first epoch, and the best model is chosen by nothing.

    ## What to do
    Go over the loader or a list, or make the generator anew in every epoch.

    ## When it is wrong
    A loop that may end early (`break`, `return`) leaves something for the next epoch, and is left
    alone.
    """
    for story in program_of(run).stories:
        for loop in used_up(story):
            if use_of(story, loop.run) is not Role.HELD_OUT:
                continue
            yield finding(
                f"`{loop.iterator.called('the iterator')}` is used up after the first epoch: "
                "later ones validate on nothing",
                (loop.iterator, "made once, and gone over once"),
                (loop.run.site, "every epoch comes back to it here"),
            )


_program = template("""
def batches(rows, size):
    for start in range(0, len(rows), size):
        yield rows[start : start + size, :4], rows[start : start + size, 4:]

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
{before}
for epoch in range(5):
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    total = 0.0
    with torch.no_grad():
        for x, y in {over}:
            total += nn.functional.mse_loss(model(x), y).item(){after:}
    print(total)
""")

FIRES = {
    "a generator function called once": _program("held_out = batches(val_rows, 64)", "held_out"),
    "iter of a loader": _program("held_out = iter(val_loader)", "held_out"),
    "a generator expression": _program("held_out = ((x, y) for x, y in val_loader)", "held_out"),
    "zip of two lists": _program("held_out = zip(val_x.split(64), val_y.split(64))", "held_out"),
}
SILENT = {
    "near miss: the generator is made in every epoch": _program("pass", "batches(val_rows, 64)"),
    "the loader itself": _program("held_out = val_loader", "held_out"),
    "a list of the batches": _program("held_out = list(batches(val_rows, 64))", "held_out"),
    "a few batches of an endless stream": _program(
        "held_out = iter(val_loader)", "held_out", "\n            break"
    ),
}
