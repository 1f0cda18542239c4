"""A running total or list keeps every step's loss, and with it every step's graph."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import cite, finding, replace, source_text, use_of
from traindx.analysis.program.training.kept_graphs import kept_graphs
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("graph-kept-alive",))
def check(run: Run) -> Findings:
    """A running total, moving average or list keeps the loss tensor of every step.

    ## What it detects
    In a loop that trains: a value that each turn computes from its own last value and from a tensor
    with a graph (`total += loss`, a meter's `update(loss)`, an exponential average), or a list that
    each turn appends such a tensor to, and that no backward is called on.

    ## Why it matters
    The tensor holds on to the graph that made it. Memory grows with every step until the device
    runs out, usually some hundred steps into an epoch that started well.

    ## What to do
    Keep the number: `total += loss.item()`, or `loss.detach()` where a tensor is wanted.

    ## When it is wrong
    A sum that backward is called on later has to keep its graph; totals that feed a loss are left
    alone, and so are those kept under `no_grad`, those of a loss that is detached in place before
    and queues of a fixed length.
    """
    for story in program_of(run).stories:
        seen: set[object] = set()
        for kept in kept_graphs(story):
            if kept.event.node not in seen:
                seen.add(kept.event.node)
                yield _finding(kept.event, kept.value)


def _finding(event: ProgramEvent, kept: Value) -> Finding:
    use = use_of(event, kept)
    name = source_text(use) if use is not None else "a tensor"
    shown = f"`{name}`" if use is not None else name
    held = event.receiver if event.name == ".append" else event.result
    holder = "the total" if held is None else min(sorted(held.names), key=len, default="the total")
    return finding(
        f"`{holder}` keeps {shown} of every step, and with it the step's graph",
        "graph-kept-alive",
        event,
        cite(event, f"{name} is kept with its graph here"),
        is_symptom=True,
        patch=None if use is None else replace(use, f"{name}.item()"),
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(10):
    total = 0
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        {kept}
    print(total / len(loader))
"""


def _loop(kept: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(kept=kept)})


_SUM = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, targets in loader:
    optimizer.zero_grad()
    total = 0
    for head, target in zip(heads, targets):
        loss = criterion(head(data), target)
        total += loss
    total.backward()
    optimizer.step()
"""

_SCALED = _LOOP.replace("loss.backward()", "scaler.scale(loss).backward()")

_DIVIDED = _LOOP.replace("loss.backward()", "(loss / 4).backward()")

FIRES = {
    "a list that is emptied after the epoch": _loop("losses.append(loss)\n    losses.clear()"),
    "a list that is added to": _loop("losses += [loss]"),
    "detached only after": _loop("total += loss\n        loss.detach_()"),
    "a part of an accumulation": make_run(
        sources={"train.py": _DIVIDED.format(kept="losses.append(loss)")}
    ),
    "a scaled loss": make_run(sources={"train.py": _SCALED.format(kept="total += loss")}),
    "a running total": _loop("total += loss"),
    "a weighted total": _loop("total += loss * data.size(0)"),
    "a list of losses": _loop("losses.append(loss)"),
}

SILENT = {
    "near miss: a state that a layer computes from the one before": _loop(
        "total = torch.tanh(torch.mm(loss.view(1, 1), weight) + total)"
    ),
    "the number is kept": _loop("total += loss.item()"),
    "near miss: a part of an accumulation as a number": make_run(
        sources={"train.py": _DIVIDED.format(kept="total += loss.item() / 4")}
    ),
    "near miss: detached in place": _loop("loss.detach_()\n        total += loss"),
    "near miss: reduced over the ranks": _loop("loss = mean_of_ranks(loss); total += loss"),
    "near miss: a list that is emptied": _loop(
        "losses.append(loss)\n        if len(losses) > 9:\n            del losses[:]"
    ),
    "near miss: a queue of a fixed length": make_run(
        sources={
            "train.py": _LOOP.format(kept="losses.append(loss)").replace("[]", "deque(maxlen=9)")
        }
    ),
    "near miss: detached": _loop("losses.append(loss.detach())"),
    "near miss: a sum over heads that is trained": make_run(sources={"train.py": _SUM}),
    "float": _loop("total += float(loss)"),
}
