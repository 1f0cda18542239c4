"""The entropy of a policy goes to zero early."""

import numpy as np

from traindx.analysis.recordings.policies import policy_entropy, policy_reward
from traindx.examples import make_run
from traindx.model.findings import Strength, cite, finding
from traindx.model.run import Floats, Series
from traindx.registry import Findings, Run, detector

GONE = 0.05  # of the entropy at the start
EARLY = 0.5  # of the run: a policy that settles in the end has done its work
STILL = 0.1  # of the reward's whole range: what it gains after the entropy is gone
ENOUGH = 20  # points
FEW = 8  # points, where the reward ends no better than it began
LASTS = 0.3  # of the run, to the end, with that little entropy


@detector(
    needs=("entropy/*|loss/train/*entropy", "reward/*"), suggests=("policy-entropy-collapse",)
)
def check(run: Run) -> Findings:
    """The entropy of a policy goes to zero early, and the reward stands still from then on.

    ## What it detects
    A policy entropy below a twentieth of its start in the first half of the run, and a reward that
    gains nothing after it; or, at any time, for the last third of a run whose reward ends no better
    than it began.

    ## Why it matters
    A policy without entropy tries nothing new: what it has not found by then it never will.

    ## What to do
    Raise the entropy bonus, lower the learning rate, or anneal the bonus more slowly.

    ## When it is wrong
    A task that is solved early has a policy that is sure of itself; a reward that is at its best is
    left alone. The entropy of continuous actions can be negative; only a fall to zero is judged.
    """
    entropy, reward = policy_entropy(run), policy_reward(run)
    if entropy is None or reward is None:
        return
    start = float(np.median(entropy.values[: len(entropy) // 20 + 1])) if len(entropy) else 0.0
    gone = _gone_since(entropy, start)
    if start <= 0 or gone is None or not _is_lost(reward.values, gone / len(entropy), len(entropy)):
        return
    says = f"{entropy.origin.name} fell from {start:.3g} to below {GONE * start:.2g}"
    yield finding(
        f"The policy entropy is near zero since {entropy.when(gone)} and the reward does not rise",
        {"policy-entropy-collapse": Strength.STRONG},
        cite(entropy, f"{says} at {entropy.when(gone)}", gone, -1, start=start),
        cite(reward, f"{reward.origin.name} ends at {reward.last:.4g}", -1, end=reward.last),
        shows="policy-entropy-collapse",
    )


def _is_lost(reward: Floats, share: float, points: int) -> bool:
    """Tell whether the reward suffers from an entropy that is gone after a share of the run."""
    points = min(points, len(reward))
    if points >= ENOUGH and share <= EARLY:
        return not _gains(*_split(reward, share)) and not _is_good(reward)
    return points >= FEW and share <= 1 - LASTS and _has_gained_nothing(reward)


def _has_gained_nothing(reward: Floats) -> bool:
    """Tell whether no stretch of the reward's second half is above where it began."""
    part = max(2, len(reward) // 5)
    late = reward[len(reward) // 2 :]
    means = np.convolve(late, np.full(part, 1 / part), mode="valid")
    return bool(float(means.max()) < float(np.mean(reward[:part])))


def _gone_since(entropy: Series, start: float) -> int | None:
    above = np.flatnonzero(entropy.values > GONE * start)
    gone = int(above[-1]) + 1 if len(above) else 0
    return gone if gone < len(entropy) else None


def _split(values: Floats, share: float) -> tuple[Floats, Floats]:
    at = max(1, int(share * len(values)))
    return values[:at], values[at:]


def _gains(before: Floats, after: Floats) -> bool:
    span = float(np.ptp(np.concatenate([before, after])))
    late = after[len(after) * 2 // 3 :]
    return span > 0 and float(np.median(late) - np.median(after[: len(after) // 3])) > STILL * span


def _is_good(reward: Floats) -> bool:
    """Tell whether the reward ends at its ceiling: the same best value again and again."""
    top = float(reward.max())
    end = reward[-max(3, len(reward) // 10) :]
    improved = float(np.median(end) - np.median(reward[: len(reward) // 10 + 1]))
    return improved > 0.5 * float(np.ptp(reward)) and bool(np.median(end) >= 0.95 * top)


def _run(entropy: Floats, reward: Floats) -> Run:
    return make_run({"entropy/train": entropy, "reward/train": reward})


_COLLAPSE = np.concatenate([np.linspace(1.4, 0.01, 20), np.full(80, 0.005)])
_RNG = np.random.default_rng(0)
_LOW = 10.0 + _RNG.standard_normal(100)
_RISING = np.linspace(10, 200, 100) + _RNG.standard_normal(100)

FIRES = {
    "early, with a poor reward": _run(_COLLAPSE, _LOW),
    "as a term of the loss, negated": make_run(
        {"loss/train/entropy": -_COLLAPSE, "reward/train": _LOW}
    ),
    "a few points, worse than at the start": _run(
        np.geomspace(0.28, 0.002, 10), np.concatenate([[7.0, 6.1], np.linspace(5.6, 5.5, 8)])
    ),
}

SILENT = {
    "near miss: a term of the loss of either sign": make_run(
        {"loss/train/entropy": 0.5 - _COLLAPSE, "reward/train": _LOW}
    ),
    "near miss: solved, and sure of it": _run(
        _COLLAPSE, np.concatenate([np.linspace(10, 500, 20), np.full(80, 500.0)])
    ),
    "falls slowly while the reward rises": _run(np.linspace(1.4, 0.2, 100), _RISING),
    "near miss: a few points, solved": _run(
        np.geomspace(0.28, 0.002, 10), np.concatenate([[20.0, 180.0], np.full(8, 200.0)])
    ),
    "near miss: a few points at the best reward from the start": _run(
        np.geomspace(0.28, 0.002, 10), np.full(10, 200.0)
    ),
    "near miss: gone, yet still gaining": _run(_COLLAPSE, _RISING),
}
