import numpy as np

from traindx.analysis.courses.rewards import drift, reward_course, training_reward
from traindx.examples import logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

GAINED = 0.2  # of its size: a reward that pays for the way
CAUSES = suggested(moderate="policy-drift", weak="lr-too-high reward-hacking")


@detector(needs=("kl/*", "reward/*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The policy moves far from its reference, and the reward hardly gains by it.

    ## What it detects
    A divergence from the reference policy that ends above one nat and at thirty times its first
    level, with a reward that gains less than a fifth.

    ## Why it matters
    The policy pays for little reward with all that the reference could do; texts go to pieces
    first, the reward follows.

    ## What to do
    Raise the weight of the KL term or lower the learning rate, and read samples from before and
    after the rise.

    ## When it is wrong
    Without a KL term the divergence is meant to grow; where the reward grows with it nothing is
    said.
    """
    found, reward = drift(run), training_reward(run)
    if found is None or reward is None or reward_course(reward).gain > GAINED:
        return
    kl, first, end = found
    course = reward_course(reward)
    gained = f"{course.told(course.start):.4g} to {course.told(course.end):.4g}"
    yield finding(
        "The policy drifts away from its reference",
        CAUSES,
        cite(kl, f"{kl.origin.name} rises from {first:.2g} to {end:.3g}", 0, -1, end=end),
        cite(reward, f"{reward.origin.name} goes from {gained}", 0, -1),
    )


_RNG = np.random.default_rng(0)
_KL = np.concatenate([np.geomspace(0.002, 2.5, 20), 2.5 + 0.2 * _RNG.standard_normal(60)])
_FLAT = 0.68 + 0.01 * _RNG.standard_normal(80)

FIRES = {
    "far, for nothing": logged(kl_train=_KL, reward_train=_FLAT),
    "late and steeply": logged(kl_train=np.geomspace(0.001, 12.0, 80), reward_train=_FLAT),
}

SILENT = {
    "near": logged(kl_train=np.linspace(0.001, 0.1, 80), reward_train=_FLAT),
    "near miss: far, and paid for": logged(kl_train=_KL, reward_train=np.linspace(0.2, 0.9, 80)),
}
