"""A part of the graph is computed once, and every step's backward runs through it."""

from traindx.analysis.program.execution.values import Result, Value, constant
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.graphs import Graphs, graph_of, is_node
from traindx.analysis.program.training.operations import operation_name
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "graph-freed"
# operations that keep what they need for backward, which the first backward frees
KEEP = frozenset({"()", "mul", "matmul", "exp", "pow", "div", "sigmoid", "tanh", "softmax", "log",
                  "sqrt", "square", "relu", "log_softmax", "norm"})  # fmt: skip


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Backward runs in every step through values that were computed before the loop.

    ## What it detects
    A loop whose every turn calls `backward` without `retain_graph`, on a loss that is computed from
    a result of a model or of its parameters that was made once, before the loop.

    ## Why it matters
    The first backward frees what that part of the graph had kept. The second one raises "Trying to
    backward through the graph a second time".

    ## What to do
    Compute it inside of the loop, so that it follows the weights; or detach it, if it is not to be
    trained.

    ## When it is wrong
    What is detached, computed under `no_grad` or handed to a function out of sight is left alone,
    and so is a backward that runs under a condition.
    """
    for story in program_of(run).stories:
        graphs = Graphs(story)
        for first, second, loop in graphs.pairs():
            if first.subject is None or second.subject is None or _keeps(first) or _keeps(second):
                continue
            known = {id(v) for v in graph_of(first.subject)}
            shared = [v for v in graph_of(second.subject) if id(v) in known and is_node(v)]
            once = [v for v in shared if _is_before(graphs, v, loop)]
            if not any(_needs_kept(v) for v in once) or graphs.is_let_go(once[0]):
                continue
            if not graphs.may_be_frozen(once[0]):
                yield _finding(once[0], second)


def _is_before(graphs: Graphs, value: Value, loop: object) -> bool:
    event = graphs.made_at(value)
    return event is not None and all(turn.loop is not loop for turn in event.turns)


def _needs_kept(value: Value) -> bool:
    return isinstance(value, Result) and operation_name(value.maker) in KEEP


def _keeps(backward: Deed) -> bool:
    """Tell whether the graph is kept, or backward need not run in every turn."""
    given = backward.event.kwargs.get("retain_graph")
    is_kept = given is not None and constant(given) is not False
    return is_kept or bool(backward.event.guards)


def _finding(value: Value, backward: Deed) -> Finding:
    place = value if value.site is not None else backward
    return finding(
        "Backward runs in every step through a graph that was built once, before the loop",
        CAUSE,
        place,
        cite(place, "computed once, with a graph"),
        cite(backward, "the second backward runs into what the first has freed"),
        is_symptom=True,
    )


_LOOP = """
import torch
from torch import nn

encoder, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
features = {features}
for step in range(100):
    optimizer.zero_grad()
    {again}
    loss = (head(features) - y).pow(2).mean()
    loss.backward({option})
    optimizer.step()
"""
_PENALTY = """
import torch
from torch import nn

class Trainer:
    def __init__(self, net):
        self.net = net
        self.penalty = sum((p ** 2).sum() for p in [net.weight])

    def fit(self, data):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for x, y in data:
            loss = nn.functional.mse_loss(self.net(x), y) + 0.1 * {penalty}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

Trainer(nn.Linear(3, 3)).fit(train_loader)
"""


_FROZEN = _LOOP.format(
    features="torch.exp(nn.Linear(2, 8).requires_grad_(False)(x))", again="pass", option=""
)


def _loop(features: str, again: str = "pass", option: str = "") -> Run:
    text = _LOOP.format(features=features, again=again, option=option)
    return make_run(sources={"train.py": text})


def _penalty(penalty: str) -> Run:
    return make_run(sources={"train.py": _PENALTY.format(penalty=penalty)})


FIRES = {
    "features of a layer": _loop("torch.relu(encoder(x))"),
    "a penalty, by a trainer": _penalty("self.penalty"),
}

SILENT = {
    "near miss: detached": _loop("encoder(x).detach()"),
    "near miss: data of a network that is frozen": make_run(sources={"train.py": _FROZEN}),
    "near miss: computed again": _loop("encoder(x)", "features = torch.relu(encoder(x))"),
    "near miss: the graph is kept": _loop("encoder(x)", option="retain_graph=True"),
    "near miss: a penalty of each step": _penalty("(self.net.weight ** 2).sum()"),
    "near miss: the number of a penalty": _penalty("self.penalty.item()"),
}
