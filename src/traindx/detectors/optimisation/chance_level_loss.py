from math import log

import numpy as np

from traindx.analysis.metrics.chance import (
    causes_by_rate,
    classes_at_level,
    classes_by_accuracy,
    has_only_begun,
    learns,
)
from traindx.analysis.metrics.learning_rates import refuted_by_rate
from traindx.analysis.metrics.objective import finite_objective
from traindx.examples import decay, flat, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

STILL = "missing-optimizer-step missing-backward lr-zero parameters-not-in-optimizer "
STILL += "frozen-parameters"
AT_CHANCE = suggested(
    weak=f"{STILL} detached-loss lr-too-low lr-too-high bad-initialisation dead-relu label-noise "
    "unnormalised-inputs vanishing-gradients gradient-clipping-too-tight clip-without-unscale "
    "weight-decay-too-high batchnorm-small-batch"
)


@detector(needs=("loss",), suggests=tuple(AT_CHANCE))
def check(run: Run) -> Findings:
    """The loss stays at the level of guessing, ln C for C classes.

    ## What it detects
    A classification loss that shows no fall and lies at the logarithm of the number of classes. The
    number is taken from the config, or guessed where the loss hits ln C closely. Where an accuracy
    stays at 1/C as well, the loss may lie somewhat above ln C, and a fall down to it is no
    learning. A learning rate that is logged tells more: that it is not zero, that it is tiny, or
    that the loss leaves the level of guessing upwards while the rate is high.

    ## Why it matters
    The model gives every class the same probability: it has learnt nothing, however long it ran.

    ## What to do
    First find out whether the weights move at all (`traindx run` shows it); that splits the causes
    in two: no step, no gradient or no learning rate on one side, data and scale on the other.

    ## When it is wrong
    A regression loss can lie near ln 2 or ln 10 by chance; so can a run that is only a few steps
    old.
    """
    finite = finite_objective(run, 5)
    if finite is None:
        return
    level = float(np.median(finite.values))
    classes, evidence = classes_at_level(run, level)
    if not classes or learns(finite):
        classes, evidence = classes_by_accuracy(run, finite)
    if not classes or has_only_begun(finite) or not finite.name.startswith("loss/"):
        return
    exact = bool(np.ptp(finite.values) <= 2e-4 * level)
    told = (
        AT_CHANCE
        | (suggested(moderate=STILL) if exact else {})
        | causes_by_rate(run, finite, log(classes))
    )
    claim = f"The loss stays at {level:.4g}, the loss of random guessing among {classes} classes"
    says = (
        f"{finite.origin.name} is {level:.4g} (ln {classes} = {log(classes):.4f}) from "
        f"{finite.when(0)} to {finite.when(-1)}"
    )
    yield finding(
        claim,
        told,
        cite(finite, says, 0, -1, level=level, chance=log(classes)),
        *evidence,
        against=refuted_by_rate(run),
    )


FIRES = {
    "ten epochs at 2.303": logged(
        loss_train=[2.3031, 2.3027, 2.3030, 2.3026, 2.3028, 2.3029, 2.3025, 2.3027], axis="epoch"
    ),
    "binary, noisy, count from the config": logged(
        loss_train=flat(300, 0.695, noise=0.02), config={"model.num_classes": 2}
    ),
}

FIRES |= {
    "above ln C, and the accuracy of a guess": logged(
        loss_train=flat(24, 1.65, noise=0.03),
        accuracy_val=flat(6, 0.2, noise=0.02),
        steps=np.arange(24) * 10.0,
    ),
    "falls to the level of guessing": logged(
        loss_train=decay(12, 2.4, 1.40, noise=0.0),
        accuracy_val=flat(6, 0.25, noise=0.02),
        axis="epoch",
    ),
    "worse than guessing while the rate is high": logged(
        loss_train=[1.38, 1.45, 1.47, 1.45, 1.43, 1.42, 1.39, 1.40, 1.39, 1.387],
        accuracy_val=[0.22, 0.26, 0.22, 0.23],
        lr=np.linspace(3e-2, 1e-4, 10),
        axis="epoch",
    ),
}

SILENT = {
    "near miss: training fits, validation guesses": logged(
        loss_train=decay(24, 1.67, 0.02),
        accuracy_val=flat(6, 0.2, noise=0.02),
        steps=np.arange(24) * 10.0,
    ),
    "near miss: the accuracy leaves the level of guessing": logged(
        loss_train=flat(24, 1.60, noise=0.03),
        accuracy_val=np.linspace(0.2, 0.45, 6),
        steps=np.arange(24) * 10.0,
    ),
    "near miss: an accuracy of 1/2 among many classes": logged(
        loss_train=flat(24, 2.1, noise=0.03),
        accuracy_val=flat(6, 0.5, noise=0.02),
        steps=np.arange(24) * 10.0,
    ),
    "starts at chance and learns": logged(loss_train=decay(100, 2.303, 0.5)),
    "near miss: learns slowly from chance": logged(
        loss_train=np.linspace(2.303, 2.25, 200) + 0.001 * np.sin(np.arange(200))
    ),
    "flat elsewhere": logged(loss_train=flat(200, 1.9, noise=0.02)),
    "near miss: it has only begun": logged(loss_train=flat(70, 0.6931, noise=0.002)),
    "another number of classes": logged(
        loss_train=flat(100, 2.303, noise=0.005), config={"num_classes": 100}
    ),
}
