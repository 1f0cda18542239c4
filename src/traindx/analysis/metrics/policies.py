"""The entropy and the reward of a policy, whatever a library calls them."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np

from traindx.analysis.curves import divergence, noise, since, slope_z
from traindx.model.findings import Evidence, cite
from traindx.model.run import Floats, Run, Series

REWARDS = 20  # points
LOST = 0.8  # of what was gained
WON_BACK = 0.6  # of what was gained
GAINED = 6.0  # times the noise: what is not surely gained cannot be lost
BEYOND = 3.0  # times what it moves in its first part: means over many episodes wander far
SURELY = 3.0  # Mann-Kendall, up to the best point: learnt, and not only lucky
LASTS = 0.15  # of the run, to the end
AWAY = 100.0  # times its level before: a divergence from the reference that has run away
LEAST_AWAY = 1.0  # nats; below, the policy is still the one it was
GONE = 0.05  # of the entropy at the start
EARLY = 0.5  # of the run: a policy that settles in the end has done its work
STILL = 0.1  # of the reward's whole range: what it gains after the entropy is gone
MANY_REWARDS = 20  # points
FEW = 8  # points, where the reward ends no better than it began
GONE_FOR = 0.3  # of the run, to the end, with that little entropy
ACTIONS = range(2, 7)  # beyond, ln A is so dense that any entropy lies near one
NEAR = 0.05  # of ln A
ENTROPY_STILL = 0.05  # of the entropy: what it moves over the whole run
GAIN = 0.4  # of the reward at the start, or of its range where that is larger
GROUPS = 10  # points


def policy_entropy(run: Run) -> Series | None:
    """Return the entropy of a policy; a loss of that name is the entropy, or the same negated."""
    told = run.get("entropy/train") or next(iter(run.matching("entropy/*")), None)
    if told is not None:
        return told.finite()
    term = next(iter(run.matching("loss/train/*entropy")), None)
    if term is None or not len(term.finite()):
        return None
    term = term.finite()
    if bool((term.values <= 0).all()):  # Stable-Baselines3 adds the negated entropy to its loss
        return replace(term, values=-term.values)
    return term if bool((term.values >= 0).all()) else None


def policy_reward(run: Run) -> Series | None:
    """Return the reward that a policy earns: the whole one, or the first of its parts."""
    told = run.get("reward/train") or next(iter(run.matching("reward/*")), None)
    return None if told is None else told.finite()


def reward_lost_since(reward: Floats) -> tuple[int, int] | None:
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


def cite_runaway_kl(run: Run) -> tuple[Evidence, ...]:
    """Cite the divergence from a reference policy where it has left its level for good."""
    kl: Series | None = run.get("kl/train") or next(iter(run.matching("kl/train/*")), None)
    if kl is None or len(kl.finite()) < REWARDS:
        return ()
    kl = kl.finite()
    before = float(np.median(np.abs(kl.values[: len(kl) // 2])))
    end = float(np.median(kl.values[-3:]))
    if end < max(LEAST_AWAY, AWAY * before):
        return ()
    return (cite(kl, f"{kl.origin.name} rose from {before:.2g} to {end:.3g}", 0, -1, end=end),)


def is_reward_lost(reward: Floats, share: float, points: int) -> bool:
    """Tell whether the reward suffers from an entropy that is gone after a share of the run."""
    points = min(points, len(reward))
    if points >= MANY_REWARDS and share <= EARLY:
        return not _gains_later(*_split(reward, share)) and not _ends_at_ceiling(reward)
    return points >= FEW and share <= 1 - GONE_FOR and _has_gained_nothing(reward)


def _has_gained_nothing(reward: Floats) -> bool:
    """Tell whether no stretch of the reward's second half is above where it began."""
    part = max(2, len(reward) // 5)
    late = reward[len(reward) // 2 :]
    means = np.convolve(late, np.full(part, 1 / part), mode="valid")
    return bool(float(means.max()) < float(np.mean(reward[:part])))


def entropy_gone_since(entropy: Series, start: float) -> int | None:
    """Return the point from which on a policy has next to no entropy."""
    gone = since(entropy.values <= GONE * start)
    return gone if gone < len(entropy) else None


def _split(values: Floats, share: float) -> tuple[Floats, Floats]:
    at = max(1, int(share * len(values)))
    return values[:at], values[at:]


def _gains_later(before: Floats, after: Floats) -> bool:
    span = float(np.ptp(np.concatenate([before, after])))
    late = after[len(after) * 2 // 3 :]
    return span > 0 and float(np.median(late) - np.median(after[: len(after) // 3])) > STILL * span


def _ends_at_ceiling(reward: Floats) -> bool:
    """Tell whether the reward ends at its ceiling: the same best value again and again."""
    top = float(reward.max())
    end = reward[-max(3, len(reward) // 10) :]
    improved = float(np.median(end) - np.median(reward[: len(reward) // 10 + 1]))
    return improved > 0.5 * float(np.ptp(reward)) and bool(np.median(end) >= 0.95 * top)


def is_random_choice(entropy: Floats) -> bool:
    """Tell whether a policy chooses at random among few actions, to the end."""
    is_still = float(np.ptp(entropy)) < ENTROPY_STILL * float(np.median(np.abs(entropy)))
    return is_still and any(
        bool(np.all((entropy > (1.0 - NEAR) * log(a)) & (entropy < (1.0 + 1e-3) * log(a))))
        for a in ACTIONS
    )


def does_reward_rise(reward: Floats) -> bool:
    """Tell whether the reward ends well above where it began."""
    part = max(2, len(reward) // 4)
    first, last = float(np.median(reward[:part])), float(np.median(reward[-part:]))
    return last - first > GAIN * abs(first)


def has_reached_best(reward: Series) -> bool:
    """Tell whether the reward has risen to its best: then all answers are right."""
    if len(reward) < GROUPS:
        return False
    return reward.last >= float(reward.values.max()) > float(np.median(reward.values[:3]))
