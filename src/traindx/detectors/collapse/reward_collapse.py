import numpy as np

from traindx.analysis.metrics.policies import (
    REWARDS,
    cite_runaway_kl,
    policy_reward,
    reward_lost_since,
)
from traindx.examples import logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding


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
    if reward is None or len(reward) < REWARDS or any(e.kind == "boundary" for e in run.events):
        return
    lost = reward_lost_since(reward.values)
    if lost is None:
        return
    best, onset = lost
    end = float(np.median(reward.values[-3:]))
    says = f"{reward.origin.name} was {reward.values[best]:.4g} at {reward.when(best)} and ends at"
    away = cite_runaway_kl(run)
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


_RNG = np.random.default_rng(0)
_NOISE = _RNG.standard_normal(100)
_UP_AND_DOWN = np.concatenate(
    [np.full(12, 5.0), np.linspace(5, 80, 28), np.linspace(80, 4, 30), np.full(30, 4.0)]
)
_KL = np.concatenate([np.full(60, 0.01), np.geomspace(0.01, 40.0, 40)])

FIRES = {
    "learnt and lost": logged(reward_train=_UP_AND_DOWN + _NOISE),
    "learnt and lost, far from the reference": logged(
        reward_train=_UP_AND_DOWN + _NOISE, kl_train=_KL
    ),
}

SILENT = {
    "rises": logged(reward_train=np.linspace(5, 80, 100) + _NOISE),
    "near miss: falls to half": logged(
        reward_train=np.concatenate([np.linspace(5, 80, 50), np.full(50, 45.0)]) + _NOISE
    ),
    "near miss: falls and comes back": logged(
        reward_train=np.concatenate([_UP_AND_DOWN, np.linspace(4, 80, 40)])
    ),
    "near miss: as deep a fall before, which it won back": logged(
        reward_train=np.concatenate([_UP_AND_DOWN, _UP_AND_DOWN])[:190]
    ),
    "noise": logged(reward_train=20.0 + 8.0 * _NOISE),
}
