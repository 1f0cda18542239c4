"""How a reward goes, what the critic explains of it, and how far the policy has drifted."""

from __future__ import annotations

import numpy as np

from traindx.analysis.courses.course import MetricCourse, constant_share, course_of
from traindx.analysis.metrics.policies import policy_entropy, policy_reward
from traindx.model.run import Floats, Run, Series

FEWEST = 8  # points of a reward
FLAT = 0.12  # of its size: what a reward gains that learns nothing …
SURE = 6.0  # … and noise levels that it gains; rewards wander far
FROM_THE_START = 0.2  # of its last step: a log that begins later is the tail of another
ZEROS = 0.9  # of the rewards, so that there is next to nothing to learn from
NOTHING = 1e-6  # loss of a critic that has only zeros to predict
LOST = 0.6  # of what was gained, by the end …
FAR = 0.3  # … and of its size …
SURELY = 4.0  # … and noise levels
TURNED = 0.85  # of the run: a best that comes later is not left for good
UNEXPLAINED = 0.05  # of the variance of the returns, and less
GROWN = 5.0  # times: the loss of a critic that never catches up
NO_ENTROPY = 0.01  # of the largest: a policy that chooses for certain …
FOR_LONG = 0.1  # … for so much of the run …
POOR = 0.75  # … at this share of the best reward, or less
DRIFTED, TIMES = 1.0, 30.0  # nats from the reference policy, and over the first of them


def held_out_reward(run: Run) -> Series | None:
    """Return the reward of evaluations."""
    told = run.get("reward/val") or run.get("reward/test")
    return None if told is None or len(told.finite()) < FEWEST else told.finite()


def training_reward(run: Run) -> Series | None:
    """Return the reward of a policy, where it is long enough to judge."""
    told = policy_reward(run)
    return None if told is None or len(told) < FEWEST else told


def reward_course(reward: Series) -> MetricCourse:
    """Describe a reward; more is better."""
    return course_of(reward.values, higher_is_better=True)


def is_without_signal(run: Run, reward: Series) -> bool:
    """Tell whether nearly all rewards are zero, or the critic has nothing to predict."""
    zeros = float(np.mean(reward.values == 0.0))
    is_tiny = not float(np.abs(reward.values).max()) > 0.0
    critic = critic_loss(run)
    is_idle = critic is not None and float(np.median(critic.values)) < NOTHING
    return is_tiny or (zeros >= ZEROS and is_flat(reward)) or (is_idle and is_flat(reward))


def is_flat(reward: Series) -> bool:
    """Tell whether a reward ends where it began, give or take its noise."""
    course = reward_course(reward)
    return course.gain < FLAT and course.sure_gain < SURE


def is_from_the_start(reward: Series) -> bool:
    """Tell whether a log holds the run from its beginning."""
    first, last = float(reward.steps[0]), float(reward.steps[-1])
    return reward.axis != "step" or first <= FROM_THE_START * last


def is_at_its_ceiling(reward: Series) -> bool:
    """Tell whether a reward is the same to the end: the best there is, or the worst."""
    return constant_share(reward.values[len(reward) // 2 :]) >= ZEROS


def is_left_behind(reward: Series) -> bool:
    """Tell whether a reward ends far below a best that it has left for good."""
    course = reward_course(reward)
    is_far = course.regret > FAR and course.sure_regret > SURELY and course.lost_share > LOST
    return is_far and course.best_at < TURNED and _stays_down(reward.values, course)


def _stays_down(values: Floats, course: MetricCourse) -> bool:
    last = values[-max(3, len(values) // 8) :]
    best, end = course.told(course.best), course.told(course.end)
    return float(np.mean(last < best - (best - end) / 3)) > LOST


def critic_loss(run: Run) -> Series | None:
    """Return the loss of a critic."""
    for name in ("loss/train/value", "loss/train/critic", "loss/train/vf"):
        told = run.get(name)
        if told is not None and len(told.finite()) >= FEWEST:
            return told.finite()
    return None


def explained_variance(run: Run) -> Series | None:
    """Return how much of the variance of the returns a critic explains."""
    for series in run.matching("other/*explained_variance*"):
        if len(series.finite()) >= FEWEST:
            return series.finite()
    return None


def explains_nothing(explained: Series) -> bool:
    """Tell whether a critic explains nothing over the second half of a run."""
    late = explained.values[len(explained) // 2 :]
    return float(np.mean(late <= UNEXPLAINED)) >= ZEROS


def grows(loss: Series) -> bool:
    """Tell whether a loss ends at several times where it began."""
    course = course_of(loss.values)
    return course.start > 0.0 and course.end > GROWN * course.start


def certain_while_poor(run: Run) -> tuple[Series, int, int] | None:
    """Return the entropy, and the stretch over which a policy is certain and earns little.

    Little is far below what it earns at its best: a policy that is certain of the best is done.
    """
    entropy, reward = policy_entropy(run), policy_reward(run)
    if entropy is None or reward is None or min(len(entropy), len(reward)) < 2 * FEWEST:
        return None
    gone = entropy.values <= NO_ENTROPY * float(entropy.values[: len(entropy) // 10 + 1].max())
    window = max(FEWEST, int(FOR_LONG * len(gone)))
    share = np.convolve(gone, np.full(window, 1.0 / window), mode="valid")
    at = int(np.argmax(share))
    if share[at] < ZEROS or float(entropy.values.max()) <= 0.0:
        return None
    course = reward_course(reward)
    inside = reward.values[_span(at, window, len(gone), len(reward))]
    best = course.told(course.best)
    is_poor = best > 0.0 and float(np.median(inside)) < POOR * min(best, course.told(course.start))
    return (entropy, at, at + window - 1) if is_poor else None


def _span(at: int, window: int, count: int, other: int) -> slice:
    first = int(at / count * other)
    return slice(first, max(first + 1, int((at + window) / count * other)))


def drift(run: Run) -> tuple[Series, float, float] | None:
    """Return the divergence from the reference policy, its first level and its last, if far."""
    kl = run.get("kl/train") or run.get("kl")
    if kl is None or len(kl.finite()) < 2 * FEWEST:
        return None
    values = kl.finite().values
    first = float(np.median(np.abs(values[: max(3, len(values) // 20)])))
    course = course_of(values)
    is_far = course.end > DRIFTED and course.end > TIMES * max(first, 1e-9)
    return (kl.finite(), first, course.end) if is_far else None
