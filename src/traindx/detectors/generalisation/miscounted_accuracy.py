from traindx.analysis.program.training.claims import cite, finding, program_of, source_text
from traindx.analysis.program.training.miscounts import Miscounted, miscounts
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector

CLAIMS = {
    Miscounted.SUM_OF_ALL_EPOCHS: (
        "`{}` grows over all epochs and is divided by the length of one"
    ),
    Miscounted.TABLE_OF_ALL_EPOCHS: "`{}` is never reset, so the metric is over all epochs so far",
    Miscounted.ALL_EPOCHS: "`{}` and `{}` are never reset, so the metric is a mean over all epochs",
    Miscounted.INDEX_AS_COUNT: "`{}` grows by the index of the batch and is divided by as a count",
    Miscounted.SUM_GOES_ON: (
        "A mean is taken of one epoch, and the sum in it goes on from the epoch before"
    ),
    Miscounted.COUNT_GOES_ON: (
        "A mean is taken of one epoch, and the count in it goes on from the epoch before"
    ),
    Miscounted.LAST_BATCH: "The matches of the last batch are divided by the examples of all",
    Miscounted.OTHER_DATA: "Held-out examples are divided by the number of those in `{}`",
    Miscounted.EXAMPLES_BY_BATCHES: "Examples are counted and divided by the number of batches",
    Miscounted.EXAMPLES_BY_COUNTED_BATCHES: (
        "Examples are counted and divided by batches, `{}`, which grows by one"
    ),
    Miscounted.MEANS_BY_EXAMPLES: "`{}` adds up means of batches and is divided by examples",
}


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """Accuracy is a count of right examples that is divided wrongly, or never starts anew.

    ## What it detects
    A sum that is made before the loop over epochs, grows with every batch, and is divided by the
    length of one epoch; counts of right and of all held-out examples that are both never reset
    between epochs; a sum that begins anew in every epoch and is divided by a count that does not,
    or the reverse; a count of right examples that is divided by the number of batches, be it
    `len(loader)` or counted by one; means of batches that are divided by the number of examples;
    matches of the last batch alone; a number of training examples under held-out matches; and a
    mean over a count that grows by the number of the batch instead of by one.

    ## Why it matters
    Training may be fine while the number that decides about it is not: an accuracy above 100 %, or
    one that depends on the batch size.

    ## What to do
    Divide by the number of examples; reset sums every epoch.

    ## When it is wrong
    Batches of one example are examples: where a loader gives such, counts are left alone. So are
    counts of steps, and counts that are divided once more, by the size of a batch or the number of
    epochs.
    """
    for found in miscounts(program_of(run)):
        claim = CLAIMS[found.wrong].format(*found.names)
        shown = cite(found.event, f"`{source_text(found.event)}`")
        yield finding(claim, shown, at=found.event)


_epochs = template("""
net = nn.Linear(4, 3)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
right = seen = 0
for epoch in range(10):
    {top:pass}
    net.train()
    for x, y in train_loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        for x, y in val_loader:
            right += (net(x).argmax(1) == y).sum().item()
            seen += len(y)
    print(epoch, right / seen)
""")
_program = template("""
model = nn.Linear(8, 3)
{before:}
for epoch in range(3):
    {top:correct = 0}
    for data, target in val_loader:
        output = model(data)
        pred = output.argmax(1)
        correct += {count:(pred == target).sum().item()}
    print(100 * correct / len({over:val_loader.dataset}))
""")
_function = template("""
loader = DataLoader(data, batch_size={size:32})

def accuracy(model, batches):
    hits, count = 0, 0
    for x, y in batches:
        hits += (model(x).argmax(-1) == y).{mean:sum()}.item()
        count += {step:1}
    return hits / count
""")
_indexed = template("""
def mean_loss(model, loader, loss_fn):
    total, count = 0.0, 0
    for i, (x, y) in enumerate(loader):
        total += loss_fn(model(x), y).item()
        count += {step:i}
    return total / (count + 1)
""")
_meter = template("""
class Accuracy:
    def __init__(self):
        self.hits = 0
        self.count = 0

    def update(self, out, y):
        self.hits += (out.argmax(1) == y).sum().item()
        self.count += len(y)

    def reset(self):
        {reset}

    def value(self):
        return self.hits / max(1, self.count)

meter = Accuracy()
for epoch in range(5):
    meter.reset()
    for x, y in loader:
        meter.update(model(x), y)
    print(meter.value())
""")
_counts = template("""
{before}
for epoch in range(5):
    {top}
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        total += loss.item() * len(x)
        seen += len(x)
    print(total / seen)
""")
_once = {"before": "correct = 0", "top": "pass"}

FIRES = {
    "a reset that misses the count": _meter("self.hits = 0; self.total = 0"),
    "a reset that misses the sum": _meter("self.count = 0"),
    "a count that is made before the epochs": _counts("seen = 0", "total = 0.0"),
    "a sum that is made before the epochs": _counts("total = 0.0", "seen = 0"),
    "both counts go on growing": _epochs(),
    "counted by the index": _indexed(),
    "never reset": _program(**_once),
    "never reset, a weighted mean": _program(
        count="(pred == target).float().mean() * data.size(0)", **_once
    ),
    "divided by the number of batches": _program(over="val_loader"),
    "divided by a count of batches": _function(),
}

SILENT = {
    "near miss: a reset of both": _meter("self.hits = self.count = 0"),
    "near miss: made in the loop": _counts("", "total, seen = 0.0, 0"),
    "near miss: a mean of all so far": _counts("total, seen = 0.0, 0", "pass"),
    "near miss: reset by a rule": _counts("total, seen = 0.0, 0", "if fresh: total = 0.0"),
    "near miss: both counts start anew": _epochs("right = seen = 0"),
    "near miss: printed and reset at the top of the next epoch": script("""
correct, seen = 0, None
while True:
    if seen is not None:
        print(correct / len(loader.dataset))
        correct = 0
    for x, y in loader:
        seen = model(x).argmax(1)
        correct += (seen == y).sum().item()
"""),
    "near miss: counted by one": _indexed("1"),
    "over classes": _program(),
    "near miss: steps by the epoch": _program(over="val_loader", count="1", **_once),
    "near miss: examples by the epoch": _program(count="data.size(0)", **_once),
    "near miss: divided by the epochs too": _program(
        over="val_loader.dataset) / (epoch + 1", **_once
    ),
    "near miss: divided by the size of a batch too": _program(over="val_loader) / (BATCH"),
    "near miss: set to zero in place": _program(top="correct.zero_()", before="correct = zeros(1)"),
    "near miss: a mean of means": _program(
        over="val_loader", count="(pred == target).float().mean().item()"
    ),
    "near miss: shares": _program(
        over="val_loader", count="(pred == target).sum().item() / len(target)"
    ),
    "near miss: batches of one": _function(size="1"),
    "near miss: examples are counted": _function(step="len(y)"),
    "near miss: a mean over batches": _function(mean="float().mean()"),
    "near miss: reset every epoch": _program(top="correct, total = 0, 0"),
}
