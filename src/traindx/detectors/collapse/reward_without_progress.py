import numpy as np

from traindx.analysis.courses.rewards import (
    is_at_its_ceiling,
    is_flat,
    is_from_the_start,
    is_without_signal,
    reward_course,
    training_reward,
)
from traindx.examples import logged, make_run
from traindx.registry import Findings, Run, cite, detector, finding, suggested

NOTHING_TO_LEARN = suggested(moderate="reward-without-signal", weak="insufficient-training")
NOTHING_LEARNT = suggested(
    weak="reward-without-signal lr-too-low lr-too-high policy-entropy-collapse "
    "insufficient-training"
)


@detector(needs=("reward/*",), suggests=tuple(NOTHING_TO_LEARN | NOTHING_LEARNT))
def check(run: Run) -> Findings:
    """The reward ends where it began.

    ## What it detects
    A reward that gains neither a good part of its size nor more than its noise from the start of
    the run to its end; or rewards that are nearly all zero, also where only the end of a log is
    left.

    ## Why it matters
    The policy has learnt nothing, however many steps it took. Where all rewards are equal, there
    is nothing to learn from.

    ## What to do
    Play the task at random and look at the rewards: if they are all alike, shape the reward or make
    the task easier first. If they differ, look at the entropy, at what the critic explains, and at
    the learning rate.

    ## When it is wrong
    A policy that was trained before is at its best from the start; a reward that has one value to
    the end is left alone, unless it is zero.
    """
    reward = training_reward(run)
    if reward is None:
        return
    has_no_signal = is_without_signal(run, reward)
    is_judged = is_from_the_start(reward) and not is_at_its_ceiling(reward)
    if not has_no_signal and not (is_judged and is_flat(reward)):
        return
    course = reward_course(reward)
    start, end = course.told(course.start), course.told(course.end)
    best = course.told(course.best)
    says = f"{reward.origin.name} goes from {start:.4g} to {end:.4g} in {len(reward)} points"
    zeros = float(np.sum(reward.values == 0.0))
    yield finding(
        "The rewards are next to nothing, so there is nothing to learn from"
        if has_no_signal
        else "The reward ends where it began",
        NOTHING_TO_LEARN if has_no_signal else NOTHING_LEARNT,
        cite(reward, f"{says}, {best:.4g} at best", 0, -1, start=start, end=end, zeros=zeros),
    )


_RNG = np.random.default_rng(0)
_NOISE = _RNG.standard_normal(100)

FIRES = {
    "never any reward": logged(reward_train=np.zeros(60)),
    "flat and noisy": logged(reward_train=-103.0 + 2.0 * _NOISE),
    "the end of a log, with a critic that predicts zeros": make_run(
        {"reward/train": np.full(20, 0.016), "loss/train/value": np.full(20, 4e-9)},
        steps=2e7 + np.arange(20.0),
    ),
}

SILENT = {
    "rises": logged(reward_train=np.linspace(-100.0, 80.0, 100) + _NOISE),
    "near miss: rises by little, but surely": logged(
        reward_train=np.linspace(0.72, 0.79, 100) + 0.003 * _NOISE
    ),
    "near miss: the end of a log of a policy that is done": logged(
        reward_train=0.975 + 0.001 * _NOISE, steps=4e6 + np.arange(100.0)
    ),
    "near miss: at its ceiling from the start": logged(reward_train=np.full(40, 500.0)),
}
