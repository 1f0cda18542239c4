"""The learning rate is so large that the first steps ruin the weights."""

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.freezing import switches
from traindx.analysis.program.training.kinds import PRETRAINED, Kind
from traindx.analysis.program.training.layers import layer_kind, registered
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.ownership import holders
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.step_sizes import (
    ParameterGroup,
    groups_of,
    is_adaptive,
    keeps_rate,
)
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "lr-too-high"
ADAPTIVE = 0.3  # every weight moves by it in every step, and weights are some tenths
FINE_TUNING = 3e-3  # of a pretrained transformer as a whole; recipes end at 1e-3
PLAIN = 10.0  # over one minus the momentum; nothing but normalisation or clipping stands it
LAYERS = 2  # a single layer has no other to lose


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """An optimizer is given a learning rate at which no network keeps what it has learnt.

    ## What it detects
    0.3 or more for Adam and its kin over a network of two or more layers; 3e-3 or more over a whole
    pretrained transformer; 10 or more for plain descent, divided by one minus the momentum, over a
    network without normalisation whose gradients are not clipped.

    ## Why it matters
    Adam moves every weight by about the rate in every step, whatever the gradient: at 0.3 the
    initial weights are gone at once. Plain descent overshoots every minimum, and the loss explodes.

    ## What to do
    Start from 1e-3 for Adam, 2e-5 for fine-tuning transformers, 0.1 for SGD.

    ## When it is wrong
    A schedule, a warm-up or the program itself may lower the rate before the first step; such
    programs are left alone, and so are those that train images, points or single layers.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for group in groups_of(story):
            site, bound = group.optimizer.site, _bound(story, group)
            rate = group.rate
            if site is None or site.node in seen or bound is None or rate is None or rate < bound:
                continue
            if not keeps_rate(story, group.optimizer, also_scaled=True) or _is_shaped(story):
                continue
            seen.add(site.node)
            yield finding(
                f"{group.kind} has a learning rate of {rate:g}, which no network stands",
                CAUSE,
                group.optimizer,
                cite(group.optimizer, f"lr={rate:g}"),
                is_symptom=True,
            )


def _bound(story: Story, group: ParameterGroup) -> float | None:
    """The rate that is too high for what the group trains; None where that is not known."""
    models = [model for model, _ in holders(group.parameters)]
    if not models or switches(story):
        return None
    if is_adaptive(group.optimizer) and all(_is_transformer(m) for m in models):
        return FINE_TUNING
    kinds = [layer_kind(part) for model in models for part in registered(model)]
    if sum(kind in WEIGHTED for kind in kinds) < LAYERS:
        return None
    if is_adaptive(group.optimizer):
        return ADAPTIVE
    is_held = any("Norm" in kind for kind in kinds) or bool(story.does(Do.CLIP))
    momentum = group.momentum
    is_known = group.kind == "SGD" and momentum is not None and momentum < 1
    return PLAIN * (1 - (momentum or 0.0)) if is_known and not is_held else None


def _is_transformer(model: object) -> bool:
    is_made = isinstance(model, Result) and model.maker.rsplit(".", 1)[-1] in PRETRAINED
    return is_made and isinstance(model, Result) and model.maker.startswith("transformers.")


def _is_shaped(story: Story) -> bool:
    """Tell whether a schedule may begin far below the rate that is given."""
    usual = ("StepLR", "MultiStepLR", "ExponentialLR", "ReduceLROnPlateau", "CosineAnnealingLR")
    made = [v for v in story.made(Kind.SCHEDULER) if isinstance(v, Result)]
    return any(not v.maker.endswith(usual) for v in made)


_LOOP = """
import torch
from torch import nn

net = {net}
optimizer = torch.optim.{optimizer}
{before}
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
"""
_NET = "nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))"


def _loop(optimizer: str, net: str = _NET, before: str = "") -> Run:
    text = _LOOP.format(optimizer=optimizer, net=net, before=before)
    return make_run(sources={"train.py": text})


_TUNING = """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
args = TrainingArguments("out", learning_rate={rate})
Trainer(model=model, args=args, train_dataset=data).train()
"""

FIRES = {
    "Adam": _loop("Adam(net.parameters(), lr=1.0)"),
    "plain descent": _loop("SGD(net.parameters(), lr=5, momentum=0.9)"),
    "a pretrained transformer": make_run(sources={"train.py": _TUNING.format(rate=0.05)}),
}
SILENT = {
    "usual": _loop("Adam(net.parameters(), lr=1e-3)"),
    "near miss: a single layer": _loop("Adam(net.parameters(), lr=1.0)", "nn.Linear(4, 1)"),
    "near miss: a schedule begins lower": _loop(
        "Adam(net.parameters(), lr=1.0)",
        before="s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1e-3 / (1 + i))",
    ),
    "near miss: normalised": _loop(
        "SGD(net.parameters(), lr=20)",
        "nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))",
    ),
    "near miss: tuned as usual": make_run(sources={"train.py": _TUNING.format(rate=5e-5)}),
}
