import numpy as np

from traindx.analysis.metrics.policies import (
    does_reward_rise,
    is_random_choice,
    policy_entropy,
    policy_reward,
)
from traindx.examples import Floats, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

ENOUGH = 8  # points
CAUSES = suggested(
    moderate="lr-too-low lr-zero lr-schedule-misuse missing-optimizer-step missing-backward",
    weak="parameters-not-in-optimizer frozen-parameters detached-loss",
)


@detector(needs=("entropy/*|loss/train/*entropy", "reward/*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """A policy's entropy stays at that of choosing at random, and the reward does not rise.

    ## What it detects
    A policy entropy that lies within a twentieth of ln A for a few actions A from the first point
    to the last, with a reward that ends about where it began.

    ## Why it matters
    A policy that learns anything prefers some actions. This one still draws them by lot.

    ## What to do
    First find out whether the weights move at all (`traindx run` shows it): if not, look for the
    backward pass, the step and the learning rate; if so, look at the size of the updates.

    ## When it is wrong
    A run that has only begun looks the same, and so does an entropy bonus so large that it
    dominates the loss.
    """
    entropy, reward = policy_entropy(run), policy_reward(run)
    if entropy is None or reward is None:
        return
    if min(len(entropy), len(reward)) < ENOUGH or not is_random_choice(entropy.values):
        return
    if does_reward_rise(reward.values):
        return
    level = float(np.median(entropy.values))
    first, last = float(reward.values[0]), reward.last
    yield finding(
        "The policy stays random and the reward does not rise",
        CAUSES,
        cite(entropy, f"{entropy.origin.name} stays at {level:.3g}", 0, -1, level=level),
        cite(reward, f"{reward.origin.name} goes from {first:.4g} to {last:.4g}", 0, -1),
    )


def _run(entropy: Floats, reward: Floats) -> Run:
    return logged(entropy_train=entropy, reward_train=reward)


_RNG = np.random.default_rng(0)
_RANDOM = 0.67 + 0.003 * _RNG.standard_normal(12)
_LOW = 10.0 + 0.5 * _RNG.standard_normal(12)

FIRES = {"by lot, to the end": _run(_RANDOM, _LOW)}

SILENT = {
    "near miss: random still, and earning more": _run(_RANDOM, np.linspace(10.0, 60.0, 12)),
    "near miss: the entropy falls": _run(np.linspace(0.67, 0.45, 12), _LOW),
    "near miss: a target for the entropy": _run(np.full(12, 0.5), _LOW),
    "continuous actions": _run(np.full(12, -1.2), _LOW),
}
