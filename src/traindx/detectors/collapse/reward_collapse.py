"""A policy loses what it had learnt to earn."""

import numpy as np

from traindx.analysis.curves import divergence, noise, slope_z
from traindx.analysis.recordings.policies import policy_reward
from traindx.examples import make_run
from traindx.model.findings import Evidence, Strength, cite, finding
from traindx.model.run import Floats, Series
from traindx.registry import Findings, Run, detector

ENOUGH = 20  # points
LOST = 0.8  # of what was gained
WON_BACK = 0.6  # of what was gained
GAINED = 6.0  # times the noise: what is not surely gained cannot be lost
BEYOND = 3.0  # times what it moves in its first part: means over many episodes wander far
SURELY = 3.0  # Mann-Kendall, up to the best point: learnt, and not only lucky
LASTS = 0.15  # of the run, to the end
AWAY = 100.0  # times its level before: a divergence from the reference that has run away
LEAST_AWAY = 1.0  # nats; below, the policy is still the one it was


@detector(
    needs=("reward/*",),
    suggests=("lr-too-high", "policy-entropy-collapse", "catastrophic-forgetting"),
)
def check(run: Run) -> Findings:
    """The reward rises, and then falls back to where it began for good.

    ## What it detects
    A reward that gained several times its own noise, lost four fifths of that again by more than it
    ever lost and won back, and stays there to the end. Where the divergence from a reference policy
    is logged and has run away as well, steps that are too large have done it.

    ## Why it matters
    A policy that collapses gathers only bad experience from then on and cannot come back.

    ## What to do
    Keep the best checkpoint. Lower the learning rate or the number of passes over a batch, clip
    tighter, and look at the entropy and at the divergence from the old policy at the onset.

    ## When it is wrong
    A task that gets harder on purpose (a curriculum, self-play) lowers the reward too.
    """
    reward = policy_reward(run)
    if reward is None or len(reward) < ENOUGH or any(e.kind == "boundary" for e in run.events):
        return
    lost = _lost_since(reward.values)
    if lost is None:
        return
    best, onset = lost
    end = float(np.median(reward.values[-3:]))
    says = f"{reward.origin.name} was {reward.values[best]:.4g} at {reward.when(best)} and ends at"
    away = _runs_away(run)
    yield finding(
        f"The reward has collapsed since {reward.when(onset)}, back to where it began",
        {
            "lr-too-high": Strength.STRONG if away else Strength.MODERATE,
            "policy-entropy-collapse": Strength.WEAK if away else Strength.MODERATE,
            "catastrophic-forgetting": Strength.WEAK,
        },
        cite(reward, f"{says} {end:.4g}", best, -1, end=end),
        *away,
        onset=reward.steps[onset],
    )


def _lost_since(reward: Floats) -> tuple[int, int] | None:
    """Return the best point and the onset of a fall that took what was gained."""
    found = divergence(reward.max() - reward)
    part = max(3, len(reward) // 8)
    start, late = float(np.median(reward[:part])), reward[-max(3, int(LASTS * len(reward))) :]
    if found is None or found.is_recovering or found.best < part // 2:
        return None
    around = reward[max(0, found.best - 1) : found.best + 2]
    gained = float(np.median(around)) - start
    if gained < GAINED * noise(reward) or float(late.max()) > start + (1.0 - LOST) * gained:
        return None
    is_learnt = gained > BEYOND * float(np.ptp(reward[:part]))
    if not is_learnt or slope_z(reward[: found.best + 1]) < SURELY:
        return None
    if _came_back(reward[found.best :], start, gained):
        return None
    return found.best, found.onset


def _came_back(reward: Floats, start: float, gained: float) -> bool:
    """Tell whether the reward was lost and won again before: then it may be once more."""
    lost = np.flatnonzero(reward < start + (1.0 - LOST) * gained)
    return len(lost) > 0 and bool(np.any(reward[lost[0] :] > start + WON_BACK * gained))


def _runs_away(run: Run) -> tuple[Evidence, ...]:
    """Cite the divergence from a reference policy where it has left its level for good."""
    kl: Series | None = run.get("kl/train") or next(iter(run.matching("kl/train/*")), None)
    if kl is None or len(kl.finite()) < ENOUGH:
        return ()
    kl = kl.finite()
    before = float(np.median(np.abs(kl.values[: len(kl) // 2])))
    end = float(np.median(kl.values[-3:]))
    if end < max(LEAST_AWAY, AWAY * before):
        return ()
    return (cite(kl, f"{kl.origin.name} rose from {before:.2g} to {end:.3g}", 0, -1, end=end),)


_RNG = np.random.default_rng(0)
_NOISE = _RNG.standard_normal(100)
_UP_AND_DOWN = np.concatenate(
    [np.full(12, 5.0), np.linspace(5, 80, 28), np.linspace(80, 4, 30), np.full(30, 4.0)]
)
_KL = np.concatenate([np.full(60, 0.01), np.geomspace(0.01, 40.0, 40)])

FIRES = {
    "learnt and lost": make_run({"reward/train": _UP_AND_DOWN + _NOISE}),
    "learnt and lost, far from the reference": make_run(
        {"reward/train": _UP_AND_DOWN + _NOISE, "kl/train": _KL}
    ),
}

SILENT = {
    "rises": make_run({"reward/train": np.linspace(5, 80, 100) + _NOISE}),
    "near miss: falls to half": make_run(
        {"reward/train": np.concatenate([np.linspace(5, 80, 50), np.full(50, 45.0)]) + _NOISE}
    ),
    "near miss: falls and comes back": make_run(
        {"reward/train": np.concatenate([_UP_AND_DOWN, np.linspace(4, 80, 40)])}
    ),
    "near miss: as deep a fall before, which it won back": make_run(
        {"reward/train": np.concatenate([_UP_AND_DOWN, _UP_AND_DOWN])[:190]}
    ),
    "noise": make_run({"reward/train": 20.0 + 8.0 * _NOISE}),
}
