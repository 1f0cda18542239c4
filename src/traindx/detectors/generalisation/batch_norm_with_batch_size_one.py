"""Batch norm is trained with batches of one."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import cite, source_text
from traindx.analysis.program.training.layers import layers_in
from traindx.analysis.program.training.loaders import (
    batch_size,
    cut_into_ones,
    has_sampler,
    is_loader,
)
from traindx.analysis.program.training.phases import source_of, training_passes
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "batchnorm-small-batch"


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A model with batch norm is trained from a loader with a batch size of one.

    ## What it detects
    A training pass in a loop over a loader that is made with `batch_size=1` (or without a size,
    which means one), or over the single examples that a batch is cut into (`batch.split(1)`), and a
    model made in sight that holds batch norm.

    ## Why it matters
    The statistics of one sample say nothing about the data, so validation with running statistics
    falls far behind training; on flat features training raises at once.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images or volumes give usable statistics from one sample; hence only a remark, unless a
    larger batch is cut up.
    """
    for story in program_of(run).stories:
        seen: set[object] = set()
        for event, _ in training_passes(story):
            given = event.args[0] if event.args else None
            cut = cut_into_ones(given)
            loader = cut or _loader_of_one(story, event)
            layers = [layer.maker.rsplit(".", 1)[-1] for layer in layers_in(event.receiver)]
            norms = sorted(name for name in layers if "BatchNorm" in name)
            if loader is None or not norms or loader in seen:
                continue
            seen.add(loader)
            yield _finding(event, loader, norms[0], is_cut=cut is not None)


def _loader_of_one(story: Story, event: ProgramEvent) -> Value | None:
    """The loader of single examples that the batches of a call come from."""
    for loop in reversed(event.loops):
        over = None if loop.over is None else source_of(loop.over)
        if over is not None and is_loader(over):
            return over if batch_size(story, over) == 1 and not has_sampler(over) else None
    return None


def _finding(event: ProgramEvent, loader: Value, norm: str, *, is_cut: bool) -> Finding:
    name = event.receiver.called() if event.receiver is not None else ""
    called = f"`{name}`" if name else f"`{source_text(event)}`"
    site = loader.site
    return Finding(
        claim=f"{called} holds {norm} and is trained on batches of one",
        strength=Strength.MODERATE,
        evidence=(
            cite(loader, "one example at a time"),
            cite(event, f"{norm} runs on it here"),
        ),
        suggests={} if is_cut else {CAUSE: Strength.MODERATE},
        shows=CAUSE if is_cut else None,  # a larger batch is there, and norm never sees it
        location=None if site is None else site.module.location(site.node),
    )


_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.{norm})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(data, batch_size={size}, shuffle=True)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""


def _program(size: str, norm: str = "BatchNorm2d(8)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(size=size, norm=norm)})


_IN_CLASS = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(x)

class Fitter:
    def __init__(self, data):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.batches = DataLoader(data, shuffle=True)

    def fit(self):
        for step, (x, y) in enumerate(self.batches):
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

Fitter(data).fit()
"""

_PIECES = _PROGRAM.replace(
    "    nn.functional.mse_loss(model(x), y).backward()",
    "    for a, b in zip(x.split({pieces}), y.split({pieces})):\n"
    "        nn.functional.mse_loss(model(a.to(device)), b).backward()",
)


def _pieces(pieces: int) -> Run:
    text = _PIECES.format(size=16, norm="BatchNorm2d(8)", pieces=pieces)
    return make_run(sources={"train.py": text})


FIRES = {
    "a batch that is cut into ones": _pieces(1),
    "batches of one": _program("1"),
    "no size, in a class": make_run(sources={"fit.py": _IN_CLASS}),
}

SILENT = {
    "near miss: a batch that is cut in halves": _pieces(8),
    "batches of 32": _program("32"),
    "near miss: group norm": _program("1", "GroupNorm(2, 8)"),
    "near miss: decided at run time": _program("args.batch_size"),
}
