"""The loss stays where guessing puts it."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import numpy as np

from traindx.evidence import Evidence, Finding, Strength, cite, cite_setting
from traindx.examples import decay, flat
from traindx.model import Run, Series, make_run
from traindx.registry import detector
from traindx.stats import curve, slope_z

CLASS_COUNTS = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")
VOCABULARIES = ("vocab_size", "n_vocab", "num_tokens", "vocabulary_size")
GUESSABLE = (*range(2, 21), 100, 1000)  # beyond, ln C is so dense that any loss lies near one
KNOWN_WITHIN = 0.03  # of ln C where the count is known
GUESSED_WITHIN = 0.005  # where it is guessed from the loss alone
FEW_STEPS = 200.0  # healthy runs leave chance within some hundreds of steps, rarely before
FALL = -4.0  # a surer fall than this (Mann-Kendall) means that the run learns


@detector(
    needs=("loss",),
    suggests=(
        "missing-optimizer-step", "lr-zero", "lr-too-low", "lr-too-high", "frozen-parameters",
        "parameters-not-in-optimizer", "detached-loss", "bad-initialisation", "dead-relu",
        "label-noise", "unnormalised-inputs", "vanishing-gradients",
    ),
)  # fmt: skip
def check(run: Run) -> Iterator[Finding]:
    """The loss stays at the level of guessing, ln C for C classes.

    ## What it detects
    A classification loss that shows no fall and lies at the logarithm of the number of classes. The
    number is taken from the config, or guessed where the loss hits ln C closely.

    ## Why it matters
    The model gives every class the same probability: it has learnt nothing, however long it ran.

    ## What to do
    First find out whether the weights move at all (`traindx run` shows it); that splits the causes
    in two: no step, no gradient or no learning rate on one side, data and scale on the other.

    ## When it is wrong
    A regression loss can lie near ln 2 or ln 10 by chance; so can a run that is only a few steps
    old.
    """
    loss = run.objective()
    if loss is None or len(loss.finite()) < 5:
        return
    finite = loss.finite()
    level = float(np.median(finite.values))
    classes, evidence = _classes(run, level)
    if not classes or _learns(finite) or _has_only_begun(finite):
        return
    exact = bool(np.ptp(finite.values) <= 2e-4 * level)
    claim = f"The loss stays at {level:.4g}, the level of guessing among {classes} classes"
    says = (
        f"{finite.origin.name} is {level:.4g} (ln {classes} = {log(classes):.4f}) from "
        f"{finite.when(0)} to {finite.when(-1)}"
    )
    yield Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(cite(finite, says, 0, -1, level=level, chance=log(classes)), *evidence),
        suggests=_suggests(exact=exact),
        is_symptom=True,
        onset=float(finite.steps[0]),
    )


def _classes(run: Run, level: float) -> tuple[int, tuple[Evidence, ...]]:
    """The number of classes whose guessing level the loss has, and how we know the number."""
    setting = run.config.find(*CLASS_COUNTS, *VOCABULARIES)
    count = run.config.number(*CLASS_COUNTS, *VOCABULARIES)
    if setting is not None and count is not None and count >= 2:
        is_there = abs(level - log(count)) < KNOWN_WITHIN * log(count)
        return (int(count), (cite_setting(setting),)) if is_there else (0, ())
    nearest = min(GUESSABLE, key=lambda c: abs(level - log(c)))
    is_there = abs(level - log(nearest)) < GUESSED_WITHIN * log(nearest)
    return (nearest, ()) if is_there else (0, ())


def _has_only_begun(loss: Series) -> bool:
    """Tell whether too few steps were taken for a healthy run to have left this level."""
    passes = float(np.ptp(loss.epochs)) if len(loss.epochs) else 0.0
    return loss.axis == "step" and float(np.ptp(loss.steps)) < FEW_STEPS and passes < 2.0


def _learns(loss: Series) -> bool:
    c = curve(loss.values)
    is_sure = slope_z(loss.values) < FALL and c.net_improvement > 3.0 * c.noise
    return is_sure or c.net_improvement > 0.05


def _suggests(*, exact: bool) -> dict[str, Strength]:
    still = Strength.MODERATE if exact else Strength.WEAK
    moving = Strength.WEAK
    return {
        "missing-optimizer-step": still,
        "lr-zero": still,
        "parameters-not-in-optimizer": still,
        "frozen-parameters": still,
        "detached-loss": Strength.WEAK,
        "lr-too-low": moving,
        "lr-too-high": moving,
        "bad-initialisation": moving,
        "dead-relu": moving,
        "label-noise": moving,
        "unnormalised-inputs": moving,
        "vanishing-gradients": moving,
    }


FIRES = {
    "ten epochs at 2.303": make_run(
        {"loss/train": [2.3031, 2.3027, 2.3030, 2.3026, 2.3028, 2.3029, 2.3025, 2.3027]},
        axis="epoch",
    ),
    "binary, noisy, count from the config": make_run(
        {"loss/train": flat(300, 0.695, noise=0.02)}, config={"model.num_classes": 2}
    ),
}

SILENT = {
    "starts at chance and learns": make_run({"loss/train": decay(100, 2.303, 0.5)}),
    "near miss: learns slowly from chance": make_run(
        {"loss/train": np.linspace(2.303, 2.25, 200) + 0.001 * np.sin(np.arange(200))}
    ),
    "flat elsewhere": make_run({"loss/train": flat(200, 1.9, noise=0.02)}),
    "near miss: it has only begun": make_run({"loss/train": flat(70, 0.6931, noise=0.002)}),
    "another number of classes": make_run(
        {"loss/train": flat(100, 2.303, noise=0.005)}, config={"num_classes": 100}
    ),
}
