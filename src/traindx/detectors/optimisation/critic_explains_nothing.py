import numpy as np

from traindx.analysis.courses.rewards import (
    critic_loss,
    explained_variance,
    explains_nothing,
    grows,
    is_flat,
    training_reward,
)
from traindx.examples import make_run
from traindx.model.run import Floats
from traindx.registry import Findings, Run, cite, detector, finding, suggested

CAUSES = suggested(
    moderate="unnormalised-targets",
    weak="lr-too-high lr-too-low reward-without-signal reward-hacking insufficient-training",
)


@detector(needs=("other/*explained_variance*", "reward/*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The critic explains nothing of the returns, and the policy or the critic does not get on.

    ## What it detects
    An explained variance of zero or less over the second half of the run, with a reward that ends
    where it began, or with a critic whose loss grows severalfold.

    ## Why it matters
    A critic that explains nothing gives the policy noise for a direction.

    ## What to do
    Normalise rewards or returns, look at the scale of the value loss beside that of the policy, and
    give the critic a learning rate of its own.

    ## When it is wrong
    Where rewards hardly differ there is no variance to explain; a reward that rises well is left
    alone.
    """
    explained, reward, critic = explained_variance(run), training_reward(run), critic_loss(run)
    if explained is None or reward is None or not explains_nothing(explained):
        return
    has_grown = critic is not None and grows(critic)
    if not has_grown and not is_flat(reward):
        return
    level = float(np.median(explained.values[len(explained) // 2 :]))
    evidence = [cite(explained, f"{explained.origin.name} is {level:.2g} in the second half", -1)]
    if critic is not None and has_grown:
        first, last = float(critic.values[0]), critic.last
        says = f"{critic.origin.name} grows from {first:.3g} to {last:.3g}"
        evidence.append(cite(critic, says, 0, -1, start=first, end=last))
    first, last = float(reward.values[0]), reward.last
    says = f"{reward.origin.name} goes from {first:.4g} to {last:.4g}"
    yield finding("The critic explains nothing of the returns", CAUSES, *evidence,
                  cite(reward, says, 0, -1))  # fmt: skip


def _run(explained: Floats, reward: Floats, critic: Floats) -> Run:
    series = {
        "other/train/explained_variance": explained,
        "reward/train": reward,
        "loss/train/value": critic,
    }
    return make_run(series)


_RNG = np.random.default_rng(0)
_FLAT = 110.0 + 4.0 * _RNG.standard_normal(60)
_RISING = np.linspace(20.0, 400.0, 60)
_NONE = 1e-4 * _RNG.standard_normal(60)

FIRES = {
    "nothing learnt": _run(_NONE, _FLAT, np.full(60, 200.0)),
    "the critic falls behind": _run(_NONE, _RISING, np.geomspace(5e5, 4e7, 60)),
}

SILENT = {
    "near miss: the reward rises": _run(_NONE, _RISING, np.full(60, 200.0)),
    "the critic learns": _run(np.linspace(0.0, 0.9, 60), _FLAT, np.full(60, 200.0)),
}
