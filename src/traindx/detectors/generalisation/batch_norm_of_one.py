"""Batch norm is trained with batches of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loaders import loaders_in
from traindx.source.loops import training_loops
from traindx.source.models import BATCH_NORMS, layers_of
from traindx.source.module import key_of


@detector(needs=("source",), suggests=("batchnorm-small-batch",))
def check(run: Run) -> Iterator[Finding]:
    """A model with batch norm is trained from a loader with a batch size of one.

    ## What it detects
    A training loop over a loader that is made with `batch_size=1` (or without a size, which means
    one), and a model made in sight that holds batch norm.

    ## Why it matters
    The statistics of one sample say nothing about the data, so validation with running statistics
    falls far behind training; on flat features training raises at once.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images or volumes give usable statistics from one sample; hence only a remark.
    """
    project = project_of(run)
    loaders = {x.name: x for x in loaders_in(project) if x.name and x.batch_size == 1}
    for loop in training_loops(project) if loaders else ():
        for forward in loop.does(Do.FORWARD):
            over = forward.loops[-1]
            names = {key_of(n) for n in ast.walk(over.iter)} if isinstance(over, ast.For) else set()
            loader = next((x for n, x in loaders.items() if n in names), None)
            made = forward.value.call
            if (
                loader is None
                or loader.has_sampler
                or made is None
                or loader.module is not loop.module
            ):
                continue
            norms = sorted(layers_of(project, forward.module, made) & BATCH_NORMS)
            if norms:
                yield Finding(
                    claim=f"`{forward.target}` holds {norms[0]} and is trained on batches of one",
                    strength=Strength.MODERATE,
                    evidence=(
                        loader.module.cite(loader.call, "a batch size of one"),
                        forward.module.cite(forward.node, f"{norms[0]} runs on it here"),
                    ),
                    suggests={"batchnorm-small-batch": Strength.MODERATE},
                    location=loader.module.location(loader.call),
                )
                break


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


FIRES = {"batches of one": _program("1")}

SILENT = {
    "batches of 32": _program("32"),
    "near miss: group norm": _program("1", "GroupNorm(2, 8)"),
    "near miss: decided at run time": _program("args.batch_size"),
}
