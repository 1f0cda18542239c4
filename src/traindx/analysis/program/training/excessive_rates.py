"""Learning rates at which the first steps ruin the weights."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.freezing import switches
from traindx.analysis.program.training.kinds import PRETRAINED, Kind
from traindx.analysis.program.training.layers import layer_kind, registered
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.ownership import holders
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.step_sizes import (
    ParameterGroup,
    groups_of,
    is_adaptive,
    keeps_rate,
)

ADAPTIVE = 0.3  # every weight moves by it in every step, and weights are some tenths
FINE_TUNING = 3e-3  # of a pretrained transformer as a whole; recipes end at 1e-3
DEEP = 0.1  # the same where many layers have to fit each other: attention, or four in a row
PLAIN = 10.0  # over one minus the momentum; nothing but normalisation or clipping stands it
LAYERS = 2  # a single layer has no other to lose
MANY = 4
ATTENTION = ("MultiheadAttention", "TransformerEncoder", "TransformerDecoder", "Transformer")


def excessive_rates(story: Story) -> Iterator[tuple[ParameterGroup, float]]:
    """Yield the groups of parameters whose rate is too high for what they train, and the rate."""
    for group in groups_of(story):
        bound, rate = _bound(story, group), group.rate
        if group.optimizer.site is None or bound is None or rate is None or rate < bound:
            continue
        if keeps_rate(story, group.optimizer, also_scaled=True) and not _is_shaped(story):
            yield group, rate


def _bound(story: Story, group: ParameterGroup) -> float | None:
    """The rate that is too high for what the group trains; None where that is not known."""
    models = [model for model, _ in holders(group.parameters)]
    if not models or switches(story):
        return None
    if is_adaptive(group.optimizer) and all(_is_transformer(m) for m in models):
        return FINE_TUNING
    kinds = [layer_kind(part) for model in models for part in registered(model)]
    count = sum(kind in WEIGHTED for kind in kinds)
    has_attention = any(kind.startswith(ATTENTION) for kind in kinds)
    if count < LAYERS and not has_attention:
        return None
    if is_adaptive(group.optimizer):
        return DEEP if has_attention or count >= MANY else ADAPTIVE
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
