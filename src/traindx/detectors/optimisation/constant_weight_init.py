"""All weights of a model, or both factors of a product, start at the same value."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.initialisation import Fill, fills, successions
from traindx.analysis.program.training.layers import layer_kind, parts_of, registered
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.program import Program, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "bad-initialisation"
RECURRENT = frozenset({"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Weights that follow each other in a model are all set to one constant.

    ## What it detects
    Linear or convolution layers one behind another, or the two factors of a low-rank product,
    whose weights are filled with one value each and not written again: by a function given to
    `model.apply`, by `nn.init`, in place, or at their making; and a loop that fills every parameter
    of a model that is trained afterwards.

    ## Why it matters
    All units of a layer compute the same and get the same gradient for ever: the layer is one unit
    wide. With zeros in both, the gradient of each is zero and neither ever changes.

    ## What to do
    Keep torch's default, or use `nn.init.kaiming_normal_` or `xavier_uniform_`; zero the bias, the
    last layer, or one of two factors only.

    ## When it is wrong
    A zero last layer, residual branch or adapter is good practice; single layers are not looked at,
    and neither are biases and normalisation layers, nor parameters that are written again later.
    """
    program = program_of(run)
    pairs = list(_pairs(program))
    seen: set[object] = set()
    for story in program.stories:
        filled = fills(story.events)
        trains = bool(story.does(Do.BACKWARD))
        for fill in filled:
            if fill.event.node in seen:
                continue
            other = _partner(fill, filled, pairs)
            is_left = fill.is_all and story.escapes(fill.owner) is not Answer.YES
            if is_left and trains and _depth(fill.owner) > 1:
                seen.add(fill.event.node)
                yield _finding(fill, None, "every parameter of the model")
            elif other is not None:
                seen |= {fill.event.node, other.event.node}
                yield _finding(fill, other, _subject(fill, other))


def _pairs(program: Program) -> Iterator[tuple[Value, Value]]:
    """Yield the weights of which one directly follows another, by calls or in a chain."""
    for story in program.stories:
        yield from successions(story.events)
        for event in story.events:
            if layer_kind(event.result) == "Sequential" and isinstance(event.result, Result):
                layers = [p for p in parts_of(event.result) if layer_kind(p) in WEIGHTED]
                yield from pairwise(layers)


def _partner(
    fill: Fill, filled: Sequence[Fill], pairs: Sequence[tuple[Value, Value]]
) -> Fill | None:
    """Return another constant weight that directly follows, or is followed by, a constant one."""
    for other in filled:
        is_pair = any(a is fill.owner and b is other.owner for a, b in pairs)
        if is_pair and not fill.is_all and not other.is_all:
            return other
    return None


def _depth(model: Value) -> int:
    """Return how many weight matrices are behind each other; one that recurs counts twice."""
    kinds = [layer_kind(part) for part in registered(model)]
    return sum(k in WEIGHTED for k in kinds) + 2 * sum(k in RECURRENT for k in kinds)


def _subject(fill: Fill, other: Fill) -> str:
    if fill.event.node is other.event.node:
        return "every linear or convolution weight of the model"
    return "weights that follow each other"


def _finding(fill: Fill, other: Fill | None, what: str) -> Finding:
    more = (
        ()
        if other is None or other.event.node is fill.event.node
        else (cite(other.event, f"and {other.value:g} for the weight that follows"),)
    )
    return finding(
        f"`{source_text(fill.event)}` gives {what} the same value",
        CAUSE,
        fill.event,
        cite(fill.event, f"{fill.value:g} for all units"),
        *more,
        is_symptom=True,
    )


_PROGRAM = """
import torch
from torch import nn

def init_weights(m):
    if isinstance(m, {layer}):
        {fill}

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model.apply(init_weights)
"""


def _program(fill: str, layer: str = "nn.Linear") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(fill=fill, layer=layer)})


_AVERAGE = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    p.data.zero_()
{after}
loss.backward()
"""
_SUMMED = "for p, q in zip(model.parameters(), other.parameters()):\n    p.data.add_(q.data / n)"
_GATE = """
import torch
from torch import nn

def zero_init(m):
    if isinstance(m, nn.Conv2d):
        nn.init.zeros_(m.weight)

class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.Conv2d(8, 8, 3))
        self.gate = nn.Sequential(nn.SiLU(), nn.Conv2d(8, 3, 1))
        self.{part}.apply(zero_init)
"""


_BRANCH = """
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return x + self.last(self.first(x).relu())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(), Block()

    def forward(self, x):
        return self.two(self.one(x))
"""


def _source(text: str) -> Run:
    return make_run(sources={"train.py": text})


_LORA = """
import torch
from torch import nn
import torch.nn.functional as F

class Adapter(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Parameter({down})
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)
"""

FIRES = {
    "both factors of a low-rank product": _source(_LORA.format(down="torch.zeros(4, 8)")),
    "zeros": _program("nn.init.zeros_(m.weight)"),
    "a constant": _program("nn.init.constant_(m.weight, 0.5)"),
    "fill": _program("m.weight.data.fill_(0)"),
    "beside normalisation layers": _program(
        "nn.init.zeros_(m.weight)\n"
        "    elif isinstance(m, nn.BatchNorm1d):\n        nn.init.ones_(m.weight)"
    ),
    "every parameter": _source(_AVERAGE.format(after="")),
    "a part with a hidden layer": _source(_GATE.format(part="body")),
}

SILENT = {
    "near miss: one of two factors": _source(_LORA.format(down="torch.randn(4, 8)")),
    "near miss: the last layer of each residual branch": _source(_BRANCH),
    "kaiming": _program("nn.init.kaiming_normal_(m.weight)"),
    "near miss: a gate of one layer": _source(_GATE.format(part="gate")),
    "near miss: a linear model": _source(
        _PROGRAM.format(fill="nn.init.zeros_(m.weight)", layer="nn.Linear").replace(
            "nn.Linear(4, 8), nn.ReLU(), ", ""
        )
    ),
    "near miss: an average is taken": _source(_AVERAGE.format(after=_SUMMED)),
    "near miss: weights are loaded": _source(
        _AVERAGE.format(after="model.load_state_dict(torch.load(path))")
    ),
    "near miss: an identity": _program(
        "nn.init.zeros_(m.weight)\n        m.weight.data.fill_diagonal_(1.0)"
    ),
    "near miss: the bias only": _program("nn.init.zeros_(m.bias)"),
    "near miss: a normalisation layer": _program("nn.init.ones_(m.weight)", "nn.BatchNorm1d"),
}
