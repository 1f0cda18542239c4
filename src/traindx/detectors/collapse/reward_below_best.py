import numpy as np

from traindx.analysis.courses.rewards import (
    held_out_reward,
    is_left_behind,
    reward_course,
    training_reward,
)
from traindx.examples import logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

LOST = suggested(
    weak="lr-too-high policy-entropy-collapse catastrophic-forgetting reward-hacking "
    "preprocessing-mismatch"
)


@detector(needs=("reward/*",), suggests=tuple(LOST))
def check(run: Run) -> Findings:
    """The reward ends far below a best that it has left for good.

    ## What it detects
    A reward, of evaluations or else of training, that has lost most of what it had gained and a
    third of its size, by more than its noise, well before the end of the run.

    ## Why it matters
    The last policy is not the best one. Where evaluations fall while the reward of training holds,
    the two do not measure the same: another mode of the policy, another scaling of observations, or
    a reward that is gamed.

    ## What to do
    Keep the checkpoint of the best evaluation. Then lower the learning rate or clip tighter, and
    evaluate the policy both as it is trained and greedily.

    ## When it is wrong
    A curriculum or an opponent that grows stronger lowers the reward too.
    """
    if any(e.kind == "boundary" for e in run.events):
        return
    for reward in (held_out_reward(run), training_reward(run)):
        if reward is None or not is_left_behind(reward):
            continue
        course = reward_course(reward)
        at = int(course.best_at * len(reward))
        best, end = course.told(course.best), course.told(course.end)
        says = (
            f"{reward.origin.name} is about {best:.4g} at {reward.when(at)} and ends at {end:.4g}"
        )
        yield finding(
            "The reward ends far below its best",
            LOST,
            cite(reward, says, at, -1, best=best, end=end),
        )
        return


_RNG = np.random.default_rng(0)
_NOISE = _RNG.standard_normal(30)
_UP = np.linspace(20.0, 180.0, 30)

FIRES = {
    "evaluations fall while training holds": logged(
        reward_train=np.linspace(100.0, 140.0, 60),
        reward_val=np.concatenate([[113.0, 150.0, 175.0, 183.0, 180.0], np.full(25, 24.0)])
        + _NOISE,
    ),
    "worse than at the start": logged(
        reward_train=np.concatenate([np.linspace(-200, -50, 12), np.linspace(-50, -900, 18)])
        + 5 * _NOISE
    ),
}

SILENT = {
    "rises": logged(reward_train=_UP + 3 * _NOISE),
    "near miss: dips and comes back": logged(
        reward_val=np.where(np.arange(30) % 7 == 3, 25.0, _UP) + _NOISE
    ),
    "near miss: a bit below the best": logged(
        reward_train=np.concatenate([_UP[:20], np.full(10, 105.0)]) + 3 * _NOISE
    ),
}
