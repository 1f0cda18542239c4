import numpy as np

from traindx.analysis.curves import Divergence, divergence
from traindx.analysis.metrics.jumps import climbs_on
from traindx.examples import decay, flat, join, logged, make_run
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding

DOUBLED = 2.0  # a loss at twice its best is broken whatever the reason; below, several reasons fit
NOTED = 1.15  # a climb of this factor is worth acting on
FEW = 4  # points
ASTRONOMICAL = 1e12  # values and advantages of a policy stay far below, in whatever unit
HUNDREDFOLD = 100.0
EARLY = 0.1  # share of the run within which warm-up is still a matter


@detector(
    needs=("loss",),
    suggests=(
        "lr-too-high", "missing-gradient-clipping", "data-distribution-change", "missing-warmup",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The training loss rises from its best level and does not come back.

    ## What it detects
    A rise of the training loss that exceeds the noise of the run several times over, exceeds every
    rise the run has recovered from before, and lasts until the end.

    ## Why it matters
    From the onset on, every step makes the model worse; the best weights lie behind.

    ## What to do
    Look at what happened at the onset: the gradient norm, the learning rate, the data. A gradient
    norm that rises with the loss speaks for steps that are too large; a loss that steps up between
    two epochs and goes on falling speaks for other data.

    ## When it is wrong
    Losses that are not meant to fall (adversarial, policy, annealed sums) are left out by name,
    unless they grow beyond 1e12; a custom one under a plain name `loss` is not recognised.
    """
    loss = run.objective()
    if loss is None:
        yield from _beyond_reason(run)
        return
    finite = loss.finite()
    found = divergence(finite.values)
    if found is None:
        return
    if found.is_recovering:
        yield _recovering(finite, found)
        return
    yield _diverged(finite, found)


def _beyond_reason(run: Run) -> Findings:
    """A loss that need not fall, where it has grown to a size that no such loss has."""
    loss = run.main_loss()
    if loss is None or len(loss.finite()) < FEW:
        return
    told = loss.finite()
    values = np.abs(told.values)
    lowest, end = float(values.min()), float(values[-1])
    if end < max(ASTRONOMICAL, HUNDREDFOLD * lowest):
        return
    yield finding(
        f"The training loss has grown to {end:.3g}",
        {"lr-too-high": Strength.STRONG, "missing-gradient-clipping": Strength.WEAK},
        cite(told, f"{told.origin.name} grew from {lowest:.3g} to {end:.3g}", 0, -1, end=end),
        onset=told.steps[int(np.argmin(values))],
    )


def _diverged(loss: Series, found: Divergence) -> Finding:
    ratio = found.end_value / found.best_value if found.best_value > 0 else np.inf
    is_broken = found.is_explosive or ratio > DOUBLED
    feeds_itself = is_broken or (ratio > NOTED and climbs_on(loss, found))
    suggests = {
        "lr-too-high": Strength.STRONG if feeds_itself else Strength.MODERATE,
        "missing-gradient-clipping": Strength.WEAK,
        "data-distribution-change": Strength.WEAK,
    }
    if found.onset < EARLY * len(loss):
        learnt_first = found.best > 0
        suggests["missing-warmup"] = Strength.MODERATE if learnt_first else Strength.WEAK
    rise = f"{ratio:.3g}-fold" if ratio >= DOUBLED else f"by {100 * (ratio - 1):.0f} %"
    where = loss.when(found.onset)
    says = (
        f"{loss.origin.name} rose {rise} from {found.best_value:.4g} to {found.end_value:.4g}, "
        f"beginning at {where}"
    )
    levels = {"best": found.best_value, "end": found.end_value}
    levels["in_noise"] = min(found.in_noise, 1e6)
    return finding(
        f"The training loss rises since {where} and does not recover",
        suggests,
        cite(loss, says, found.best, -1, **levels),
        strength=Strength.STRONG if is_broken else Strength.MODERATE,
        onset=loss.steps[found.onset],
    )


def _recovering(loss: Series, found: Divergence) -> Finding:
    where = loss.when(found.onset)
    says = (
        f"{loss.origin.name} rose from {found.best_value:.4g} to {found.peak_value:.4g} after "
        f"{where} and is back at {found.end_value:.4g}, still falling"
    )
    return finding(
        f"The training loss jumped at {where} and is recovering",
        {},
        cite(loss, says, found.onset, -1, peak=found.peak_value, end=found.end_value),
        strength=Strength.WEAK,
        is_symptom=False,
        onset=loss.steps[found.onset],
    )


_CLIMB = 0.4 * np.exp(np.arange(60) / 12.0)

FIRES = {
    "falls, then climbs without end": logged(loss_train=join(decay(200), _CLIMB)),
    "ten epochs, worse from the seventh on": logged(
        loss_train=[4.0, 3.2, 2.8, 2.5, 2.35, 2.25, 2.6, 2.7, 2.8, 2.95], axis="epoch"
    ),
    "the value loss of a policy, beyond any reward": logged(
        loss_train=np.geomspace(1e3, 1e24, 12), reward_train=np.full(12, -200.0)
    ),
    "climbs from the first step": logged(loss_train=2.0 * np.exp(np.arange(40) / 8.0)),
}

_SPIKY = decay(600)
_SPIKY[[120, 300, 500]] *= 6.0

SILENT = {
    "noisy but falling": logged(loss_train=decay(300, noise=0.4)),
    "spikes that recover": logged(loss_train=_SPIKY),
    "flat and noisy, batch size one": logged(loss_train=flat(800, 2.1, noise=0.3)),
    "warm-up bump": logged(loss_train=join(np.linspace(11, 14, 30), decay(600, 14.0, 3.0))),
    "cosine restarts, stopped in a bump": logged(
        loss_train=join(*[decay(200, 1.0 - 0.1 * i, 0.5 - 0.05 * i) for i in range(4)])[:720]
    ),
    "near miss: a GAN's two losses drift apart": make_run(
        {"loss/train/g": np.linspace(0.7, 6.0, 300), "loss/train/d": decay(300, 0.7, 0.05)}
    ),
    "near miss: the value loss of a policy that earns more and more": logged(
        loss_train=np.geomspace(1.0, 1e6, 40), reward_train=np.linspace(1, 900, 40)
    ),
    "five points": logged(loss_train=[1.2, 0.9, 0.8, 0.85, 0.82]),
}
