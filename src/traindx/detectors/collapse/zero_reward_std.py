import numpy as np

from traindx.analysis.metrics.policies import GROUPS, has_reached_best
from traindx.examples import logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

NEARLY_ALWAYS = 0.9  # of the points
SPREAD = "other/reward_std"


@detector(
    needs=("other/reward_std", "reward/*"), suggests=("degenerate-batch", "policy-entropy-collapse")
)
def check(run: Run) -> Findings:
    """The rewards within a group have no spread, so that there is nothing to prefer.

    ## What it detects
    A `reward_std` of exactly zero at nearly every point of a run that compares answers to the same
    prompt (GRPO and its kin).

    ## Why it matters
    The advantage of an answer is its reward against that of the group. Where all earn the same it
    is zero, and so is the gradient: the run costs time and changes nothing.

    ## What to do
    Look at a few answers and what they earned. Where none earns anything, the reward is out of
    reach or its test is wrong: pay for partial success, take easier prompts. Where all are alike,
    sample at a higher temperature.

    ## When it is wrong
    A task that is solved earns full marks everywhere; a run that has come there is left alone.
    """
    spread, reward = run.get(SPREAD), run.get("reward/train")
    if spread is None or reward is None or len(spread.finite()) < GROUPS:
        return
    share = float(np.mean(spread.finite().values == 0.0))
    if share < NEARLY_ALWAYS or has_reached_best(reward.finite()):
        return
    level = reward.finite().last
    yield finding(
        "All answers to a prompt get the same reward, so their advantages are zero",
        suggested(moderate="degenerate-batch policy-entropy-collapse"),
        cite(spread, f"{spread.origin.name} is 0 at {share:.0%} of the points", 0, -1),
        cite(reward, f"{reward.origin.name} is {level:.4g} at the end", -1, end=level),
    )


FIRES = {"nothing is ever earned": logged(reward_train=np.zeros(20), other_reward_std=np.zeros(20))}

SILENT = {
    "spread": logged(reward_train=np.full(20, 0.4), other_reward_std=np.full(20, 0.3)),
    "near miss: none in half of the points": logged(
        reward_train=np.full(20, 0.1), other_reward_std=np.tile([0.0, 0.2], 10)
    ),
    "near miss: solved": logged(
        reward_train=np.concatenate([[0.2, 0.6], np.ones(38)]),
        other_reward_std=np.concatenate([[0.4, 0.3], np.zeros(38)]),
    ),
}
