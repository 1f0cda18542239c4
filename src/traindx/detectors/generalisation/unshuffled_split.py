from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.splits import cut_by_class
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("distribution-shift",))
def check(run: Run) -> Findings:
    """Data that were put in the order of their labels are split at an index.

    ## What it detects
    Data taken in the order of an `argsort` of the labels (or sorted by a column of them) and then
    cut into `[:n]` and `[n:]` without being shuffled in between, where the parts are for training
    and for validation or testing, or are made in a function that splits.

    ## Why it matters
    One part holds other classes than the other. What is learnt from the first says nothing about
    the second.

    ## What to do
    Shuffle before the split, or split within each class: `train_test_split(…, stratify=labels)`.

    ## When it is wrong
    A study of classes that were never seen splits by class on purpose, and so does one of clients
    or tasks that differ; where names say so, or name no such parts, the rule is silent.
    """
    for division, order in cut_by_class(program_of(run)):
        name = division.whole.called("the data")
        yield finding(
            f"`{name}` is sorted by label and then cut in two: each part has its own classes",
            (order, "in the order of the labels"),
            (division.tail, f"`{source_text(division.tail)}`: the later classes"),
            at=division.whole,
        )
        return


_program = template("""
images, labels = load()
order = {order:}
images, labels = images[order], labels[order]
{then:}
train = torch.utils.data.TensorDataset(images[:1000], labels[:1000])
test = torch.utils.data.TensorDataset(images[{start:1000}:], labels[{start}:])
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in torch.utils.data.DataLoader(train, shuffle=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
""")

FIRES = {
    "a method": _program("labels.argsort()"),
    "both at once": _program(
        "labels.argsort()", "x_train, x_test = images[:1000], images[1000:]", start="0"
    ),
    "a function": _program("torch.argsort(labels)"),
}

SILENT = {
    "near miss: clients that differ": _program(
        "labels.argsort()", "clients = [images[:1000], images[1000:]]", start="0"
    ),
    "near miss: classes that were never seen": _program(
        "labels.argsort()", "test_unseen = images[1000:]", start="0"
    ),
    "near miss: tasks one after the other": _program(
        "labels.argsort()", "first, second = images[:1000], images[1000:]", start="0"
    ),
    "shuffled": _program("torch.randperm(len(labels))"),
    "near miss: by time": _program("times.argsort()"),
    "near miss: shuffled afterwards": _program(
        "labels.argsort()", "mix = torch.randperm(9)\nimages, labels = images[mix], labels[mix]"
    ),
    "near miss: the cut is elsewhere": _program("labels.argsort()", start="0"),
}
