"""Weights are drawn with a standard deviation that is far too large, or far too small."""

from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.initialisation import (
    Draw,
    draws,
    fan_in,
    is_rescaled,
    is_weight,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.ownership import holding_of, optimizers_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.step_sizes import is_adaptive
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "bad-initialisation"
LARGE = 4.0  # times the spread of the input, in each layer; sound rules end at the root of two
SMALL = 0.01  # a narrow transformer begins at 0.1
LAYERS = 2  # a single one may have a reason: a head, a projection of random features
NORMALISES = ("BatchNorm", "InstanceNorm", "GroupNorm")  # the scale of what is before them is lost


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Several layers are initialised with random weights of a spread that does not fit their width.

    ## What it detects
    Two or more linear or convolution weights, or parameters made in sight, whose standard deviation
    times the root of the inputs is above 4, in a model without batch normalisation; or below 0.01
    where a plain optimizer trains them. `normal_(w, 0.02)` is a frequent form: 0.02 is the mean,
    and the standard deviation stays at 1.

    ## Why it matters
    Every layer multiplies the spread of its input by that factor: activations explode and saturate,
    or the output and the gradients no longer depend on the input.

    ## What to do
    Keep torch's default, use `kaiming_normal_` or `xavier_uniform_`, or give `std=` by name.

    ## When it is wrong
    Layers whose outputs are normalised forget the scale of their weights; such models are left
    alone, and so are single layers, embeddings, and weights that are loaded or written later.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        large, small = _out_of_scale(story)
        for found, says in ((large, "too large"), (small, "too small")):
            first = found[0] if len(found) >= LAYERS else None
            if first is None or first.event.node in seen:
                continue
            seen.add(first.event.node)
            spread = f"a standard deviation of {first.std:.3g}"
            spread = f"a gain of {first.std:.3g}" if first.is_relative else spread
            yield finding(
                f"`{source_text(first.event) or 'the initial weight'}` draws weights with {spread},"
                f" {says} for {len(found)} layers",
                CAUSE,
                first.event,
                cite(first.event, f"mean {first.mean:g}, {spread}"),
                is_symptom=True,
            )


def _out_of_scale(story: Story) -> tuple[list[Draw], list[Draw]]:
    """The weights that blow up their input, and those that shrink it to nothing."""
    kinds = [layer_kind(layer) for layer in story.made(Kind.MODEL)]
    if any(kind.startswith(NORMALISES) for kind in kinds):
        return [], []
    weights = [d for d in draws(story) if _is_weight(d) and not is_rescaled(story, d.owner)]
    gains = [(d, d.gain(fan_in(story, d.owner) or 1)) for d in weights]
    holding = holding_of(story, *optimizers_of(story))
    are_plain = not any(is_adaptive(o) for o in optimizers_of(story)) and not holding.is_open
    small = [d for d, gain in gains if 0 < gain < SMALL and are_plain and holding.has(d.owner)]
    return [d for d, gain in gains if gain > LARGE], small


def _is_weight(draw: Draw) -> bool:
    return layer_kind(draw.owner) in WEIGHTED or is_weight(draw.owner)


_PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(64, 128), nn.Linear(128, 10)
        self.apply(self.reset)

    def reset(self, m):
        if isinstance(m, nn.Linear):
            {init}

    def forward(self, x):
        return self.two({norm}(self.one(x).relu()))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
"""


def _program(init: str, norm: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(init=init, norm=norm)})


_BY_HAND = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.randn(784, 100){scale})
        self.two = nn.Parameter(torch.randn(100, 10){scale})

    def forward(self, x):
        return (x @ self.one).relu() @ self.two
"""

FIRES = {
    "the mean for the standard deviation": _program("nn.init.normal_(m.weight, 0.02)"),
    "in place": _program("m.weight.data.normal_(0, 1)"),
    "uniform": _program("nn.init.uniform_(m.weight)"),
    "a gain": _program("nn.init.xavier_normal_(m.weight, gain=10)"),
    "parameters of its own": make_run(sources={"train.py": _BY_HAND.format(scale="")}),
    "far too small": _program("nn.init.normal_(m.weight, std=1e-6)"),
}
SILENT = {
    "near miss: normalised before use": make_run(
        sources={
            "train.py": _BY_HAND.format(scale="")
            .replace("self.one)", "nn.functional.normalize(self.one))")
            .replace("@ self.two", "@ (self.two / 10)")
        }
    ),
    "near miss: std by name": _program("nn.init.normal_(m.weight, std=0.02)"),
    "near miss: with the width": make_run(sources={"train.py": _BY_HAND.format(scale=" * 0.05")}),
    "near miss: normalised": _program("nn.init.normal_(m.weight, 0.02)", "nn.BatchNorm1d(128)"),
    "near miss: drawn again": _program(
        "nn.init.normal_(m.weight, 0.02); nn.init.kaiming_normal_(m.weight)"
    ),
    "a usual rule": _program("nn.init.xavier_uniform_(m.weight)"),
}
