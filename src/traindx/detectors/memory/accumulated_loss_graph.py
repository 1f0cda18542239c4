from traindx.analysis.program.training.claims import finding, replace, source_text, use_of
from traindx.analysis.program.training.kept_graphs import kept_graphs
from traindx.analysis.program.training.program import each_place
from traindx.examples import script, template
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
    for kept in each_place(run, kept_graphs, lambda kept: kept.event.node):
        event, use = kept.event, use_of(kept.event, kept.value)
        name = source_text(use) if use is not None else "a tensor"
        held = event.result if event.name.startswith("operator.") else event.receiver
        names = [] if held is None else sorted(held.names)
        yield finding(
            f"`{min(names, key=len, default='the total')}` keeps `{name}` of every step, and with "
            "it the step's graph",
            (event, f"{name} is kept with its graph here"),
            patch=None if use is None else replace(use, f"{name}.{kept.remedy}"),
        )


_loop = template("""
import collections
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = {losses:[]}
for epoch in range(10):
    total = 0
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        {minimised:loss}.backward()
        optimizer.step()
        {kept}
    print(total / len(loader))
""")

FIRES = {
    "a list that is emptied after the epoch": _loop("losses.append(loss)\n    losses.clear()"),
    "a list that is added to": _loop("losses += [loss]"),
    "detached only after": _loop("total += loss\n        loss.detach_()"),
    "a part of an accumulation": _loop("losses.append(loss)", minimised="(loss / 4)"),
    "a scaled loss": _loop("total += loss", minimised="scaler.scale(loss)"),
    "a running total": _loop("total += loss"),
    "a weighted total": _loop("total += loss * data.size(0)"),
    "a list of losses": _loop("losses.append(loss)"),
    "a list of records": _loop("losses.append((epoch, loss))"),
    "a long queue": _loop("losses.append(loss)", losses="collections.deque(maxlen=50_000)"),
    "a table by step": _loop("losses[id(data)] = loss", losses="dict()"),
}

SILENT = {
    "near miss: a state that a layer computes from the one before": _loop(
        "total = torch.tanh(torch.mm(loss.view(1, 1), weight) + total)"
    ),
    "the number is kept": _loop("total += loss.item()"),
    "near miss: a part of an accumulation as a number": _loop(
        "total += loss.item() / 4", minimised="(loss / 4)"
    ),
    "near miss: detached in place": _loop("loss.detach_()\n        total += loss"),
    "near miss: reduced over the ranks": _loop("loss = mean_of_ranks(loss); total += loss"),
    "near miss: a list that is emptied": _loop(
        "losses.append(loss)\n        if len(losses) > 9:\n            del losses[:]"
    ),
    "near miss: a list of records of numbers": _loop("losses.append((epoch, loss.item()))"),
    "near miss: the last one in a table": _loop("losses['last'] = loss", losses="dict()"),
    "near miss: a queue of a fixed length": _loop(
        "losses.append(loss)", losses="collections.deque(maxlen=9)"
    ),
    "near miss: detached": _loop("losses.append(loss.detach())"),
    "near miss: a sum over heads that is trained": script("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, targets in loader:
    optimizer.zero_grad()
    total = 0
    for head, target in zip(heads, targets):
        loss = criterion(head(data), target)
        total += loss
    total.backward()
    optimizer.step()
"""),
    "float": _loop("total += float(loss)"),
}
