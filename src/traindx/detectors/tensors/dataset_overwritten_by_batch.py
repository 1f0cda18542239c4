from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.overwritten_data import overwritten_data
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("name-shadowed",))
def check(run: Run) -> Findings:
    """A batch takes the name of the data it comes from, and later epochs see that batch alone.

    ## What it detects
    A loop that runs a model on batches and whose variable has the name of the data that it goes
    over, inside of a loop over epochs: `for x_val, y_val in batches(x_val, y_val)`. Also
    `x = x[i:i + n]`, which cuts the second batch out of the first.

    ## Why it matters
    Nothing fails. From the second epoch on the loop goes over the last batch, so the model is
    trained or judged on a handful of examples.

    ## What to do
    Give the batch a name of its own: `for xb, yb in batches(x_val, y_val)`.

    ## When it is wrong
    Data that are made anew in every epoch are left alone, and so are loops that run no model.
    """
    for found in each_place(run, overwritten_data, at=lambda found: found.loop.site.node):
        name = found.assignment.name
        yield finding(
            f"`{name}` is the data and becomes a batch of it: the next epoch has only that batch",
            (found.assignment.site, f"{name} is one batch from here on"),
        )


_epochs = template("""
def batches(x, y, size):
    for rows in torch.arange(len(x)).split(size):
        yield x[rows], y[rows]

net = nn.Linear(8, 2)
held_x, held_y = torch.randn(300, 8), torch.zeros(300).long()
for epoch in range(20):
    {epoch}
""")
_COUNTED = "correct += (net({x}).argmax(1) == {y}).sum().item()"
_JUDGED = f"""correct = 0
    {{made}}
    for {{x}}, {{y}} in {{over}}:
        {_COUNTED}"""
_CUT = """for i in range(0, 300, 30):
        {x} = held_x[i:i + 30]
        net({x})"""


def _judged(x: str, y: str, over: str = "batches(held_x, held_y, 64)", made: str = "") -> Run:
    return _epochs(_JUDGED.format(x=x, y=y, over=over, made=made or "net.eval()"))


FIRES = {
    "a generator": _judged("held_x", "held_y"),
    "pieces": _judged("held_x", "part", "zip(held_x.split(64), held_y.split(64))"),
    "a slice of itself": _epochs(_CUT.format(x="held_x")),
}

SILENT = {
    "near miss: a slice with a name of its own": _epochs(_CUT.format(x="rows")),
    "near miss: names of their own": _judged("xb", "yb"),
    "near miss: made anew in every epoch": _judged(
        "held_x", "held_y", made="held_x, held_y = torch.randn(300, 8), torch.zeros(300).long()"
    ),
    "near miss: shuffled as a whole": _epochs(
        "order = torch.randperm(300)\n    held_x, held_y = held_x[order], held_y[order]\n"
        "    net(held_x)"
    ),
    "near miss: no model": _epochs(
        "for held_x, held_y in batches(held_x, held_y, 64):\n        print(held_x)"
    ),
}
