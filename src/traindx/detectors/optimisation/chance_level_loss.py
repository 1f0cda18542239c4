"""The loss stays where guessing puts it."""

from math import log

import numpy as np

from traindx.analysis.curves import curve, running_median, slope_z
from traindx.examples import decay, flat, make_run
from traindx.model.findings import Evidence, Strength, cite, cite_setting, finding, suggested
from traindx.model.run import Series
from traindx.registry import Findings, Run, detector

CLASS_COUNTS = ("num_classes", "n_classes", "num_labels", "nb_classes", "classes", "nclass")
VOCABULARIES = ("vocab_size", "n_vocab", "num_tokens", "vocabulary_size")
GUESSABLE = (*range(2, 21), 100, 1000)  # beyond, ln C is so dense that any loss lies near one
KNOWN_WITHIN = 0.03  # of ln C where the count is known
GUESSED_WITHIN = 0.005  # where it is guessed from the loss alone
FEW_STEPS = 200.0  # healthy runs leave chance within some hundreds of steps, rarely before
EVALUATIONS = 4  # of which an accuracy, and a rate, are judged
FEW_CLASSES = 19  # of the guessable counts; beyond, 1/C is too small to tell one from the next
LIKE_A_GUESS = 0.25  # of 1/C: the noise of an accuracy over a few hundred examples
BELOW, ABOVE = 0.98, 1.12  # of ln C: a model that is no better than a guess, sure of a few answers
SMALL_RATE = 1e-5  # rarely used from scratch, and never seen to learn there
NEAR = 0.02  # of ln C
FALL = -4.0  # a surer fall than this (Mann-Kendall) means that the run learns


@detector(
    needs=("loss",),
    suggests=(
        "missing-optimizer-step", "lr-zero", "lr-too-low", "lr-too-high", "frozen-parameters",
        "parameters-not-in-optimizer", "detached-loss", "bad-initialisation", "dead-relu",
        "label-noise", "unnormalised-inputs", "vanishing-gradients", "missing-backward",
        "gradient-clipping-too-tight", "clip-without-unscale", "weight-decay-too-high",
        "batchnorm-small-batch",
    ),
)  # fmt: skip
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
    loss = run.objective()
    if loss is None or len(loss.finite()) < 5:
        return
    finite = loss.finite()
    level = float(np.median(finite.values))
    classes, evidence = _classes(run, level)
    if not classes or _learns(finite):
        classes, evidence = _classes_by_accuracy(run, finite)
    if not classes or _has_only_begun(finite) or not finite.name.startswith("loss/"):
        return
    exact = bool(np.ptp(finite.values) <= 2e-4 * level)
    told = _suggests(exact=exact) | _told_by_rate(run, finite, log(classes))
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
        against=_refuted(run),
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


def _classes_by_accuracy(run: Run, loss: Series) -> tuple[int, tuple[Evidence, ...]]:
    """The number of classes of which both loss and accuracy are those of a guess."""
    names = ("accuracy/val", "accuracy/test", "accuracy/train")
    accuracy = next((s.finite() for n in names if (s := run.get(n)) is not None), None)
    if accuracy is None or len(accuracy) < EVALUATIONS:
        return 0, ()
    shares = accuracy.values / (100.0 if float(accuracy.values.max()) > 1.5 else 1.0)
    level = float(np.median(shares[len(shares) // 2 :]))
    end = float(np.median(loss.values[-max(3, len(loss) // 3) :]))
    low = float(running_median(loss.values, max(5, 2 * (len(loss) // 8) + 1)).min())
    for classes in GUESSABLE[:FEW_CLASSES]:
        guess = log(classes)
        is_share = abs(level * classes - 1.0) < LIKE_A_GUESS
        is_never_better = float(shares.max()) * classes < 1.0 + 2.0 * LIKE_A_GUESS
        is_there = BELOW * guess < low and end < ABOVE * guess
        if is_share and is_never_better and is_there:
            says = f"{accuracy.origin.name} stays at {level:.3g}; random guessing gives 1/{classes}"
            return classes, (cite(accuracy, says, 0, -1, level=level),)
    return 0, ()


def _told_by_rate(run: Run, loss: Series, guess: float) -> dict[str, Strength]:
    """What the learning rate says about a loss that stays at the level of guessing."""
    rate = run.get("lr")
    if rate is None or len(rate.finite()) < EVALUATIONS or float(rate.finite().values.max()) <= 0:
        return {}
    rates = rate.finite()
    if float(rates.values.max()) < SMALL_RATE:
        return {"lr-too-low": Strength.STRONG}
    early = loss.values[1 : max(2, len(loss) // 2)]
    ends = all(abs(float(v) - guess) < NEAR * guess for v in loss.values[[0, -1]])
    falls = rates.last < 0.5 * float(rates.values.max())
    if falls and ends and float(np.median(early)) > (1.0 + NEAR) * guess:
        return {"lr-too-high": Strength.STRONG}
    return {}


def _refuted(run: Run) -> dict[str, Strength]:
    """A logged rate above zero is not zero."""
    rate = run.get("lr")
    is_positive = rate is not None and bool(np.any(rate.finite().values > 0.0))
    return {"lr-zero": Strength.STRONG} if is_positive else {}


def _has_only_begun(loss: Series) -> bool:
    """Tell whether too few steps were taken for a healthy run to have left this level."""
    passes = float(np.ptp(loss.epochs)) if len(loss.epochs) else 0.0
    return loss.axis == "step" and float(np.ptp(loss.steps)) < FEW_STEPS and passes < 2.0


def _learns(loss: Series) -> bool:
    c = curve(loss.values)
    is_sure = slope_z(loss.values) < FALL and c.net_improvement > 3.0 * c.noise
    return is_sure or c.net_improvement > 0.05


def _suggests(*, exact: bool) -> dict[str, Strength]:
    still = "missing-optimizer-step missing-backward lr-zero parameters-not-in-optimizer "
    still += "frozen-parameters"
    moving = "detached-loss lr-too-low lr-too-high bad-initialisation dead-relu label-noise "
    moving += "unnormalised-inputs vanishing-gradients gradient-clipping-too-tight "
    moving += "clip-without-unscale weight-decay-too-high batchnorm-small-batch"
    return suggested(moderate=still, weak=moving) if exact else suggested(weak=f"{still} {moving}")


FIRES = {
    "ten epochs at 2.303": make_run(
        {"loss/train": [2.3031, 2.3027, 2.3030, 2.3026, 2.3028, 2.3029, 2.3025, 2.3027]},
        axis="epoch",
    ),
    "binary, noisy, count from the config": make_run(
        {"loss/train": flat(300, 0.695, noise=0.02)}, config={"model.num_classes": 2}
    ),
}

FIRES |= {
    "above ln C, and the accuracy of a guess": make_run(
        {"loss/train": flat(24, 1.65, noise=0.03), "accuracy/val": flat(6, 0.2, noise=0.02)},
        steps=np.arange(24) * 10.0,
    ),
    "falls to the level of guessing": make_run(
        {"loss/train": decay(12, 2.4, 1.40, noise=0.0), "accuracy/val": flat(6, 0.25, noise=0.02)},
        axis="epoch",
    ),
    "worse than guessing while the rate is high": make_run(
        {
            "loss/train": [1.38, 1.45, 1.47, 1.45, 1.43, 1.42, 1.39, 1.40, 1.39, 1.387],
            "accuracy/val": [0.22, 0.26, 0.22, 0.23],
            "lr": np.linspace(3e-2, 1e-4, 10),
        },
        axis="epoch",
    ),
}

SILENT = {
    "near miss: training fits, validation guesses": make_run(
        {"loss/train": decay(24, 1.67, 0.02), "accuracy/val": flat(6, 0.2, noise=0.02)},
        steps=np.arange(24) * 10.0,
    ),
    "near miss: the accuracy leaves the level of guessing": make_run(
        {"loss/train": flat(24, 1.60, noise=0.03), "accuracy/val": np.linspace(0.2, 0.45, 6)},
        steps=np.arange(24) * 10.0,
    ),
    "near miss: an accuracy of 1/2 among many classes": make_run(
        {"loss/train": flat(24, 2.1, noise=0.03), "accuracy/val": flat(6, 0.5, noise=0.02)},
        steps=np.arange(24) * 10.0,
    ),
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
