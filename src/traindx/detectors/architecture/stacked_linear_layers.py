"""Linear layers that follow each other without anything nonlinear between them."""

import re

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance, Result, constant, options_of
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import (
    cite,
    finding,
    insert_argument_after,
    source_text,
)
from traindx.analysis.program.training.layers import (
    assigned,
    layer_kind,
    maker_name,
    parts_of,
    setting,
    size,
)
from traindx.analysis.program.training.linearity import (
    LayerRow,
    Linearity,
    expands,
    model_around,
    widens,
)
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "missing-nonlinearity"
ENOUGH = 3  # layers: two make a factorised map, and that is often meant
# models that are linear on purpose say so in the names of their class, chain or maker
MEANT = re.compile(
    r"deep_?linear|linear_?(net|model|map|auto|probe)|lora|adapter|factor|low_?rank|pca|affine",
    re.IGNORECASE,
)
# and so do two layers that make one on purpose
PAIR = re.compile(
    MEANT.pattern + r"|proj|down|up_|bottleneck|head|embed|query|value|key|logvar|\bmu\b|latent"
    r"|logit|tied",
    re.IGNORECASE,
)
CHAIN = 2  # pairs in a row: three linear layers that are one


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Linear layers follow each other without a nonlinearity between them.

    ## What it detects
    A model with at least three linear or convolutional layers one behind the other, of which
    everything that the forward pass computes is a sum, reshape, mean, dropout or batch
    normalisation: it is linear as a whole. Three linear layers in a chain, or two that meet in a
    middle wider than both ends, wherever in a model. Also, as a weaker remark, a linear layer whose
    output goes to the next linear layer and nowhere else, directly or through dropout, where the
    middle is as wide as one of its ends.

    ## Why it matters
    Linear maps in a row are one linear map: however deep, they learn no more than one layer can.

    ## What to do
    Put an activation such as `torch.relu` after every layer but the last.

    ## When it is wrong
    Deep linear networks are studied, and low-rank maps, adapters and projections are factorised;
    narrow middles and models with such names are left alone, and so are convolutions in groups, and
    classes that are part of another model, for what bends may follow there. Heads on one trunk that
    compresses are not deep.
    """
    program = program_of(run)
    parts = _parts(program)
    seen: set[object] = set()
    for story in program.stories:
        if is_test_file(story.execution.module):
            continue
        linearity = Linearity(story.events, story.flow)
        whole = _whole(parts, story, linearity) or _chain(story, linearity)
        pairs = [] if whole else _pairs(story, linearity)
        node = (whole or [pairs[0][0]])[0].node if whole or pairs else None
        places = {e.receiver.site.node for e in (*whole, *(p[0] for p in pairs))
                  if e.receiver is not None and e.receiver.site is not None}  # fmt: skip
        if node is not None and not places & seen:
            yield _deep(whole) if whole else _pair(story, *pairs[0], count=len(pairs))
        seen |= places


def _parts(program: Program) -> set[object]:
    """The classes of the project whose objects are a part of another model."""
    return {
        option.cls.node
        for other in program.stories
        for kept in assigned(other.events)
        for option in options_of(kept.value)
        if isinstance(option, Instance)
    }


def _whole(parts: set[object], story: Story, linearity: Linearity) -> list[ProgramEvent]:
    """Return the calls of the layers of a model that is linear as a whole and deep enough."""
    rows = [r for r in linearity.rows() if not _is_part(r, parts) and not _is_meant(story, r)]
    for row in sorted(rows, key=lambda r: -len(r.calls)):
        heads = [r for r in rows if r.calls[0] is row.calls[0]]
        every = list({id(e.receiver): e for r in heads for e in r.calls}.values())
        is_forked = len(row.calls) == 2 and widens(row.layers[0])
        calls = every if is_forked else list(row.calls)
        is_deep = len({id(e.receiver) for e in calls}) >= ENOUGH or _is_grown(story, row)
        if is_deep and not linearity.is_bent(row):
            return calls
    return []


def _chain(story: Story, linearity: Linearity) -> list[ProgramEvent]:
    """Return the calls of linear layers in a chain that is long, or wider inside than outside."""
    for row in linearity.chains():
        is_linear = all(layer_kind(layer) == "Linear" for layer in row.layers)
        count = len({id(layer) for layer in row.layers})
        is_deep = count >= ENOUGH or (count == len(row.calls) == CHAIN and expands(row))
        if is_deep and is_linear and not _is_scattered(row) and not _is_meant(story, row):
            return list(row.calls)
    return []


def _is_part(row: LayerRow, parts: set[object]) -> bool:
    model = model_around(row.calls[0])
    return _is_scattered(row) or (model is not None and model.cls.node in parts)


def _is_scattered(row: LayerRow) -> bool:
    """Tell whether a row goes through several models behind each other."""
    model = model_around(row.calls[0])
    is_loose = model is None and len({e.node for e in row.calls}) > 1
    return is_loose or any(model_around(e) is not model for e in row.calls)


def _is_grown(story: Story, row: LayerRow) -> bool:
    """Tell whether a loop of unknown length made the layers: two of them stand for many."""
    if len(row.calls) < 2:
        return False
    makers = story.recall(_by_result)
    made = [e for layer in dict.fromkeys(map(id, row.layers)) for e in makers.get(layer, ())]
    looped = [e for e in made if any(not loop.is_whole for loop in e.loops)]
    return len({e.node for e in looped}) < len(looped)


def _by_result(story: Story) -> dict[int, list[ProgramEvent]]:
    found: dict[int, list[ProgramEvent]] = {}
    for event in story.events:
        if event.result is not None:
            found.setdefault(id(event.result), []).append(event)
    return found


def _names(story: Story, layer: Result) -> list[str]:
    """Return the names of a layer, of the chain that it is in, and of the function that made it."""
    chains = [c for c in story.recall(_chains) if any(part is layer for part in parts_of(c))]
    return [*layer.names, maker_name(layer), *(name for chain in chains for name in chain.names)]


def _chains(story: Story) -> list[Result]:
    called = {id(e.receiver): e.receiver for e in story.events if e.name == "()"}
    return [c for c in called.values() if isinstance(c, Result) and layer_kind(c) == "Sequential"]


def _is_meant(story: Story, row: LayerRow, pattern: re.Pattern[str] = MEANT) -> bool:
    for call, layer in zip(row.calls, row.layers, strict=True):
        owner = call.within[-1] if call.within else None
        around = [m.cls.node.name for m in (owner, model_around(call)) if isinstance(m, Instance)]
        if any(pattern.search(name) for name in (*around, *_names(story, layer))):
            return True
        groups = setting(layer, "groups")
        if groups is not None and constant(groups) != 1:
            return True
    return False


def _pairs(story: Story, linearity: Linearity) -> list[tuple[ProgramEvent, ProgramEvent]]:
    """Return the calls of linear layers whose output only the next linear layer takes."""
    found: dict[object, tuple[ProgramEvent, ProgramEvent]] = {}
    for first in linearity.calls:
        second = linearity.next_layer(first)
        if second is None or first.receiver is second.receiver:
            continue
        row = LayerRow((first, second))
        is_linear = all(layer_kind(layer) == "Linear" for layer in row.layers)
        is_whole = is_linear and not _is_scattered(row)
        if is_whole and _is_wide(row) and not _is_meant(story, row, PAIR):
            found.setdefault(id(first.receiver), (first, second))
    return list(found.values())


def _is_wide(row: LayerRow) -> bool:
    first, second = row.layers
    start, middle, end = (
        size(first, "in_features"), size(first, "out_features"), size(second, "out_features")
    )  # fmt: skip
    if start is None or middle is None or end is None:
        return False
    return middle >= min(start, end) and middle > 1


def _deep(calls: list[ProgramEvent]) -> Finding:
    first, last = calls[0].receiver, calls[-1].receiver
    assert first is not None and last is not None
    says = f"{source_text(first)} is the first of {len(calls)} layers"
    return finding(
        f"{len(calls)} layers are one linear map: nothing between them is nonlinear",
        CAUSE,
        first,
        cite(first, says),
        cite(last, f"{source_text(last)} is the last"),
        is_symptom=True,
    )


def _pair(story: Story, first: ProgramEvent, second: ProgramEvent, *, count: int) -> Finding:
    strength = Strength.MODERATE if count >= CHAIN else Strength.WEAK
    layer, after = first.receiver, second.receiver
    assert layer is not None and after is not None
    one, other = (
        cite(layer, f"{source_text(layer)} goes straight to the next"),
        cite(after, source_text(after)),
    )
    return Finding(
        claim=f"`{source_text(layer)}` and `{source_text(after)}` follow each other without a "
        "nonlinearity",
        strength=strength,
        evidence=(one, other),
        suggests={CAUSE: strength},
        location=finding("", CAUSE, layer).location,
        patch=_patch(story, layer),
    )


def _patch(story: Story, layer: object) -> str | None:
    """Add an activation where the layer stands in a nn.Sequential."""
    is_inside = any(a is layer for c in _chains(story) for a in c.args)
    if not is_inside or not isinstance(layer, Result):
        return None
    prefix = source_text(layer).partition(layer_kind(layer))[0]
    return insert_argument_after(layer, f"{prefix}ReLU()")


_NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, {width})
        self.fc2 = nn.Linear({width}, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = {first}(self.fc1(x))
        x = {first}(self.fc2(x))
        return self.fc3(x)
"""
_CHAIN = """
from torch import nn
model = nn.Sequential(
    nn.Linear(784, 256),
    {more}
    nn.Linear(256, 10),
)
"""
_NARROW = """
from torch import nn
model = nn.Sequential(nn.Linear(512, 8), nn.Linear(8, 512))
"""


def _net(first: str, width: int = 256, name: str = "Net") -> Run:
    text = _NET.format(first=first, width=width).replace("class Net", f"class {name}")
    return make_run(sources={"model.py": text})


_DEEP = """
import torch
from torch import nn
import torch.nn.functional as F

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(20, 64)
        self.mid = nn.Linear(64, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, x, t):
        h = torch.cat([x, torch.sin(t)], 1)
        h = {act}(self.inp(h))
        h = h + {act}(self.mid(h))
        {more}
        return self.out(h)
"""
_USER = """
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, x, t):
        return F.relu(self.inner(x, t))
"""
_CNN = """
from torch import nn
model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8),{pool} nn.Conv2d(8, 16, 3), nn.Flatten(),
    nn.Linear(16 * 28 * 28, 10),
)
"""


def _deep_net(act: str = "", more: str = "", name: str = "Net") -> Run:
    return make_run(sources={"model.py": _DEEP.format(act=act, more=more, name=name)})


_GROWN = """
from torch import nn

class Perceptron(nn.Module):
    def __init__(self, sizes, rate):
        super().__init__()
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers.append(nn.Linear(before, after))
            {between}
        self.chain = nn.Sequential(*layers)

    def forward(self, x):
        {forward}
"""
_ONE_BY_ONE = """for layer in self.chain[:-1]:
            x = layer(x).relu()
        return self.chain[-1](x)"""
_HEADS = """
from torch import nn

class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear({wide}, 64)
        self.mood = nn.Linear(64, 3)
        self.topic = nn.Linear(64, 20)

    def forward(self, x):
        h = self.trunk(x)
        return self.mood(h), self.topic(h)
"""


def _grown_net(between: str, forward: str = "return self.chain(x)") -> Run:
    return make_run(sources={"model.py": _GROWN.format(between=between, forward=forward)})


FIRES = {
    "three in a row": _net(""),
    "two in a chain": make_run(sources={"model.py": _CHAIN.format(more="nn.Dropout(0.1),")}),
    "grown in a loop": _grown_net("layers.append(nn.Dropout(rate))"),
    "with a skip connection": _deep_net(),
    "scaled": _deep_net(more="h = h * 0.5"),
    "two heads on a trunk that widens": make_run(sources={"model.py": _HEADS.format(wide=4)}),
    "convolutions": make_run(sources={"m.py": _CNN.format(pool="")}),
}

_PROBED = """
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.a, self.b, self.c = nn.Conv1d(1, 8, 3), nn.Conv1d(8, 16, 3), nn.Conv1d(16, 32, 3)
        with torch.no_grad():
            width = self.c(self.b(self.a(torch.randn(1, 1, 32)))).numel()
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        x = self.c(torch.relu(self.b(torch.relu(self.a(x)))))
        return self.out(torch.relu(x).flatten(1))
"""

_FUSED = """
import torch
from torch import nn

class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.fuse, self.mix, self.tail = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 3, 3)

    def forward(self, x):
        x = torch.relu(self.body(torch.relu(self.first(x))))
        return self.tail(self.mix(self.fuse(x)) + x)
"""

SILENT = {
    "near miss: a size is asked for without the activations": make_run(sources={"m.py": _PROBED}),
    "near miss: features are fused after layers that bend": make_run(sources={"m.py": _FUSED}),
    "an activation between": _net("torch.relu"),
    "near miss: a deep linear network, as it is studied": _net("", name="DeepLinearNetwork"),
    "near miss: a module as activation": make_run(
        sources={"model.py": _CHAIN.format(more="nn.GELU(),")}
    ),
    "near miss: a narrow middle factorises": make_run(sources={"m.py": _NARROW}),
    "near miss: grown in a loop, with activations": _grown_net("layers.append(nn.ReLU())"),
    "near miss: grown in a loop, called layer by layer": _grown_net("pass", _ONE_BY_ONE),
    "near miss: two heads side by side": make_run(sources={"model.py": _HEADS.format(wide=768)}),
    "near miss: a chain that is linear on purpose": make_run(
        sources={"m.py": _CNN.format(pool="").replace("model =", "deep_linear =")}
    ),
    "near miss: grown in a loop, with something out of sight": _grown_net("layers += make(after)"),
    "activations": _deep_net("F.silu"),
    "near miss: normalised by layer": _deep_net(more="h = F.layer_norm(h, (64,))"),
    "near miss: gated by itself": _deep_net(more="h = h * h"),
    "near miss: max pooling bends": make_run(
        sources={"m.py": _CNN.format(pool=" nn.MaxPool2d(1),")}
    ),
    "near miss: a function of one's own": _deep_net("Bend.apply"),
    "near miss: part of a model that bends": make_run(
        sources={"model.py": _DEEP.format(act="", more="", name="Net") + _USER}
    ),
    "near miss: convolutions in groups": make_run(
        sources={"m.py": _CNN.format(pool=" nn.Conv2d(8, 8, 3, groups=8),")}
    ),
    "near miss: linear on purpose": _deep_net(name="DeepLinearNet"),
}
