"""The entropy and the reward of a policy, whatever a library calls them."""

from __future__ import annotations

from dataclasses import replace

from traindx.model.run import Run, Series


def policy_entropy(run: Run) -> Series | None:
    """Return the entropy of a policy; a loss of that name is the entropy, or the same negated."""
    told = run.get("entropy/train") or next(iter(run.matching("entropy/*")), None)
    if told is not None:
        return told.finite()
    term = next(iter(run.matching("loss/train/*entropy")), None)
    if term is None or not len(term.finite()):
        return None
    term = term.finite()
    if bool((term.values <= 0).all()):  # Stable-Baselines3 adds the negated entropy to its loss
        return replace(term, values=-term.values)
    return term if bool((term.values >= 0).all()) else None


def policy_reward(run: Run) -> Series | None:
    """Return the reward that a policy earns: the whole one, or the first of its parts."""
    told = run.get("reward/train") or next(iter(run.matching("reward/*")), None)
    return None if told is None else told.finite()
