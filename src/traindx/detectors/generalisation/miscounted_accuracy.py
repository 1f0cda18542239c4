"""A metric is a sum that is divided by the wrong count."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Part, Value, depends_on
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.averages import (
    means_over_examples,
    of_last_batch,
    of_other_data,
)
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.counters import (
    Counter,
    counter_of,
    counters,
    counts_matches,
    half_reset,
    is_index,
    is_one,
    is_over,
    is_size,
    length_of,
    quotients,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.loaders import batch_size, is_loader
from traindx.analysis.program.training.phases import Loop, Phase, source_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

Counters = dict[object, Counter]
STEPS = (Do.STEP, Do.MANUAL_UPDATE)


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
    program = program_of(run)
    is_of_one = any(_gives_one(story) for story in program.stories)
    seen: set[object] = set()
    for story in program.stories:
        known = counters(story)
        for event, above, below in quotients(story) if known else ():
            claim = (
                _never_reset(event, above, below, known)
                or _of_all_epochs(event, above, below, known)
                or _by_index(above, below, known)
                or _half_reset(story, event, above, below)
                or _left_out(story, event, above, below, known)
            )
            if not claim and not is_of_one:
                claim = _per_batch(story, above, below, known) or _means(story, above, below, known)
            if claim and event.node not in seen:
                seen.add(event.node)
                yield finding(
                    claim,
                    "metric-bug",
                    event,
                    cite(event, f"`{source_text(event)}`"),
                    is_symptom=True,
                )


def _gives_one(story: Story) -> bool:
    """Tell whether a loader gives one example at a time, so that batches are examples."""
    made = (e.result for e in story.events if not e.is_own)
    return any(is_loader(v) and batch_size(story, v) == 1 for v in made if v is not None)


def _never_reset(event: ProgramEvent, above: Value, below: Value, known: Counters) -> str:
    counter = counter_of(above, known)
    length = length_of(below)
    if counter is None or length is None or not event.loops or len(counter.events[0].loops) < 2:
        return ""
    data = length.of if isinstance(length, Part) and length.key == "dataset" else length
    if not is_over(counter.loop, data) or any(is_size(t) for t in counter.terms):
        return ""
    outer = event.loops[-1]
    is_inner = outer.site.node is not counter.loop.site.node
    if is_inner and counter.carries_over(outer):
        return f"`{counter.name}` grows over all epochs and is divided by the length of one"
    return ""


def _of_all_epochs(event: ProgramEvent, above: Value, below: Value, known: Counters) -> str:
    """Right examples and examples of held-out data, both counted on through all epochs."""
    right, all_ = counter_of(above, known), counter_of(below, known)
    if (
        right is None
        or all_ is None
        or not event.loops
        or not all(map(counts_matches, right.terms))
    ):
        return ""
    outer, inner = event.loops[-1], Loop(right.story, right.loop)
    is_outer = outer.site.node is not inner.run.site.node and len(right.events[0].loops) > 1
    if (
        not is_outer
        or inner.phase is not Phase.HELD_OUT
        or not Loop(right.story, outer).does(*STEPS)
    ):
        return ""
    if right.carries_over(outer) and all_.carries_over(outer):
        return (
            f"`{right.name}` and `{all_.name}` grow over all epochs: a mean of every epoch so far"
        )
    return ""


def _by_index(above: Value, below: Value, known: Counters) -> str:
    """A count that grows by the index of `enumerate` and that a sum is divided by."""
    for counter in known.values():
        sums = [e.result for e in counter.events if e.result is not None]
        if not any(is_index(t) for t in counter.terms):
            continue
        if any(depends_on(below, s) for s in sums) and not _is_weighted(above, counter):
            return f"`{counter.name}` grows by the index of the batch and is divided by as a count"
    return ""


def _half_reset(story: Story, event: ProgramEvent, above: Value, below: Value) -> str:
    """A mean of which the sum begins anew in every epoch and the count does not, or the reverse."""
    which = half_reset(story, event, above, below)
    if not which:
        return ""
    whole = "the sum" if which == "above" else "the count"
    return f"A mean is taken of one epoch, and {whole} in it goes on from the epoch before"


def _left_out(
    story: Story, event: ProgramEvent, above: Value, below: Value, known: Counters
) -> str:
    """The matches of the last batch alone, or a number of examples of other data."""
    if of_last_batch(story, event, above, below, known):
        return "The matches of the last batch are divided by the examples of all"
    other = of_other_data(story, above, below, known)
    return f"Held-out examples are divided by the number of those in `{other}`" if other else ""


def _means(story: Story, above: Value, below: Value, known: Counters) -> str:
    counter = means_over_examples(story, above, below, known)
    name = "" if counter is None else counter.name
    return f"`{name}` adds up means of batches and is divided by examples" if counter else ""


def _is_weighted(above: Value, counter: Counter) -> bool:
    return any(depends_on(above, t) for t in counter.terms)


def _per_batch(story: Story, above: Value, below: Value, known: Counters) -> str:
    """A count of right examples, grown in a loop over batches, that is divided by the batches."""
    counter = counter_of(above, known)
    if counter is None or not all(counts_matches(t) for t in counter.terms):
        return ""
    over = None if counter.loop.over is None else source_of(counter.loop.over)
    if over is None or story.kind_of(over).kind is not Kind.LOADER:
        return ""
    length = length_of(below)
    if length is not None and is_over(counter.loop, length):
        return "Examples are counted and divided by the number of batches"
    other = counter_of(below, known)
    is_of_batches = other is not None and all(map(is_one, other.terms))
    if is_of_batches and other is not None and other.loop.site.node is counter.loop.site.node:
        return f"Examples are counted and divided by batches, `{other.name}`, which grows by one"
    return ""


_EPOCHS = """
import torch
from torch import nn

net = nn.Linear(4, 3)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
right = seen = 0
for epoch in range(10):
    {top}
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
"""

_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, {units})
{before}
for epoch in range(3):
    {top}
    for data, target in val_loader:
        output = model(data)
        pred = {pred}
        correct += {count}
    print(100 * correct / len({over}))
"""


def _program(
    pred: str = "output.argmax(1)",
    top: str = "correct = 0",
    before: str = "",
    units: int = 3,
    over: str = "val_loader.dataset",
    count: str = "(pred == target).sum().item()",
) -> Run:
    text = _PROGRAM.format(pred=pred, top=top, before=before, units=units, over=over, count=count)
    return make_run(sources={"train.py": text})


_COUNTED = """
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=32)

def accuracy(model, batches):
    hits, count = 0, 0
    for x, y in batches:
        hits += (model(x).argmax(-1) == y).sum().item()
        count += 1
    return hits / count
"""

_INDEXED = """
def mean_loss(model, loader, loss_fn):
    total, count = 0.0, 0
    for i, (x, y) in enumerate(loader):
        total += loss_fn(model(x), y).item()
        count += {step}
    return total / (count + 1)
"""

_METER = """
import torch

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
"""
_COUNTS = """
import torch
{before}
for epoch in range(5):
    {top}
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        total += loss.item() * len(x)
        seen += len(x)
    print(total / seen)
"""


def _meter(reset: str) -> Run:
    return make_run(sources={"train.py": _METER.format(reset=reset)})


def _counts(before: str, top: str) -> Run:
    return make_run(sources={"train.py": _COUNTS.format(before=before, top=top)})


FIRES = {
    "a reset that misses the count": _meter("self.hits = 0; self.total = 0"),
    "a reset that misses the sum": _meter("self.count = 0"),
    "a count that is made before the epochs": _counts("seen = 0", "total = 0.0"),
    "a sum that is made before the epochs": _counts("total = 0.0", "seen = 0"),
    "both counts go on growing": make_run(sources={"train.py": _EPOCHS.format(top="pass")}),
    "counted by the index": make_run(sources={"train.py": _INDEXED.format(step="i")}),
    "never reset": _program(top="pass", before="correct = 0"),
    "never reset, a weighted mean": _program(
        top="pass", before="correct = 0", count="(pred == target).float().mean() * data.size(0)"
    ),
    "divided by the number of batches": _program(over="val_loader"),
    "divided by a count of batches": make_run(sources={"train.py": _COUNTED}),
}

_LATER = """
correct, seen = 0, None
while True:
    if seen is not None:
        print(correct / len(loader.dataset))
        correct = 0
    for x, y in loader:
        seen = model(x).argmax(1)
        correct += (seen == y).sum().item()
"""

SILENT = {
    "near miss: a reset of both": _meter("self.hits = self.count = 0"),
    "near miss: made in the loop": _counts("", "total, seen = 0.0, 0"),
    "near miss: a mean of all so far": _counts("total, seen = 0.0, 0", "pass"),
    "near miss: reset by a rule": _counts("total, seen = 0.0, 0", "if fresh: total = 0.0"),
    "near miss: both counts start anew": make_run(
        sources={"train.py": _EPOCHS.format(top="right = seen = 0")}
    ),
    "near miss: printed and reset at the top of the next epoch": make_run(
        sources={"train.py": _LATER}
    ),
    "near miss: counted by one": make_run(sources={"train.py": _INDEXED.format(step="1")}),
    "over classes": _program(),
    "near miss: steps by the epoch": _program(
        top="pass", before="correct = 0", over="val_loader", count="1"
    ),
    "near miss: examples by the epoch": _program(
        top="pass", before="correct = 0", count="data.size(0)"
    ),
    "near miss: divided by the epochs too": _program(
        top="pass", before="correct = 0", over="val_loader.dataset) / (epoch + 1"
    ),
    "near miss: divided by the size of a batch too": _program(over="val_loader) / (BATCH"),
    "near miss: set to zero in place": _program(top="correct.zero_()", before="correct = zeros(1)"),
    "near miss: a mean of means": _program(
        over="val_loader", count="(pred == target).float().mean().item()"
    ),
    "near miss: shares": _program(
        over="val_loader", count="(pred == target).sum().item() / len(target)"
    ),
    "near miss: batches of one": make_run(
        sources={"train.py": _COUNTED.replace("batch_size=32", "batch_size=1")}
    ),
    "near miss: examples are counted": make_run(
        sources={"train.py": _COUNTED.replace("count += 1", "count += len(y)")}
    ),
    "near miss: a mean over batches": make_run(
        sources={"train.py": _COUNTED.replace(".sum()", ".float().mean()")}
    ),
    "near miss: reset every epoch": _program(top="correct, total = 0, 0"),
}
