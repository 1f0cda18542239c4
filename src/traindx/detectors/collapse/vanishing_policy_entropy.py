import numpy as np

from traindx.analysis.courses.rewards import certain_while_poor
from traindx.analysis.metrics.policies import (
    GONE,
    entropy_gone_since,
    is_reward_lost,
    policy_entropy,
    policy_reward,
)
from traindx.examples import Floats, join, logged, make_run
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding


@detector(
    needs=("entropy/*|loss/train/*entropy", "reward/*"), suggests=("policy-entropy-collapse",)
)
def check(run: Run) -> Findings:
    """The entropy of a policy goes to zero early, and the reward stands still from then on.

    ## What it detects
    A policy entropy below a twentieth of its start in the first half of the run, and a reward that
    gains nothing after it; or, at any time, for the last third of a run whose reward ends no better
    than it began; or, for a tenth of the run anywhere, an entropy below a hundredth of the first
    and a reward far below both its start and its best.

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
    stretch = certain_while_poor(run)
    if stretch is not None:
        yield _poor(*stretch, reward)
        return
    start = float(np.median(entropy.values[: len(entropy) // 20 + 1])) if len(entropy) else 0.0
    gone = entropy_gone_since(entropy, start)
    if (
        start <= 0
        or gone is None
        or not is_reward_lost(reward.values, gone / len(entropy), len(entropy))
    ):
        return
    says = f"{entropy.origin.name} fell from {start:.3g} to below {GONE * start:.2g}"
    yield finding(
        f"The policy entropy is near zero since {entropy.when(gone)} and the reward does not rise",
        {"policy-entropy-collapse": Strength.STRONG},
        cite(entropy, f"{says} at {entropy.when(gone)}", gone, -1, start=start),
        cite(reward, f"{reward.origin.name} ends at {reward.last:.4g}", -1, end=reward.last),
        shows="policy-entropy-collapse",
    )


def _poor(entropy: Series, first: int, last: int, reward: Series) -> Finding:
    level = float(np.median(entropy.values[first : last + 1]))
    best = float(reward.values.max())
    return finding(
        f"The policy chooses without entropy from {entropy.when(first)} on and earns little by it",
        {"policy-entropy-collapse": Strength.STRONG},
        cite(entropy, f"{entropy.origin.name} is about {level:.2g}", first, last, level=level),
        cite(reward, f"{reward.origin.name} is {best:.4g} at its best", -1, best=best),
    )


def _run(entropy: Floats, reward: Floats) -> Run:
    return logged(entropy_train=entropy, reward_train=reward)


_COLLAPSE = np.concatenate([np.linspace(1.4, 0.01, 20), np.full(80, 0.005)])
_RNG = np.random.default_rng(0)
_LOW = 10.0 + _RNG.standard_normal(100)
_RISING = np.linspace(10, 200, 100) + _RNG.standard_normal(100)

FIRES = {
    "for a while, and poor": _run(
        join(np.full(8, 0.6), np.full(30, 1e-5), np.full(62, 0.02)),
        join(np.full(10, 50.0), np.full(30, 25.0), np.full(60, 110.0)) + _RNG.standard_normal(100),
    ),
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
