"""Causes in training by rewards."""

from __future__ import annotations

from traindx.causes.cause import DATA, DEBUGGING, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="reward-without-signal",
        title="The rewards are all alike, so there is nothing to learn from",
        what=(
            "The reward is never found, or all answers of a group earn the same: advantages are "
            "zero and the policy gets no direction. It looks like a learning rate that is too low, "
            "but the critic's loss is next to nothing and the entropy stays high."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Make the reward reachable: shape it, begin with an easier task or with "
                    "demonstrations, sample more answers per prompt, or drop prompts that are "
                    "always right or always wrong"
                ),
                expected_effect="rewards differ within a batch, and the mean reward rises",
                verify="print the minimum, the mean and the maximum of the rewards of one batch",
                if_it_fails="if rewards differ and nothing rises, look at the advantages",
            ),
        ),
        confirm_by=(Ask("log the spread of the rewards in each batch or group"),),
    ),
    Cause(
        name="reward-hacking",
        title="The reward rises while what it stands for does not",
        what=(
            "The policy has found a way to be rewarded without doing the task: length, format, "
            "repetition, or a state that pays for ever. Evaluations by another measure stand still "
            "or fall."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Read or watch what earns most, and take that path out of the reward; keep the "
                    "policy near its reference"
                ),
                expected_effect="the reward and the measure that counts rise together",
                verify="evaluate by a measure that is no part of the reward",
                if_it_fails="if both fall, the policy has collapsed: look at entropy and KL",
            ),
        ),
        confirm_by=(Ask("evaluate the policy by a measure that is no part of the reward"),),
    ),
    Cause(
        name="policy-drift",
        title="The policy has moved far from its reference",
        what=(
            "The divergence from the reference model grows without bound, since the weight of the "
            "KL term is too small or the learning rate too high. Texts lose what the reference "
            "could do, mostly before the reward shows it."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Raise the weight of the KL term, or lower the learning rate",
                expected_effect="the divergence levels off below about one nat",
                verify="log the divergence and read samples every few hundred steps",
                if_it_fails="if it still jumps, look at the gradient norm and clip it",
            ),
        ),
        confirm_by=(Ask("compare samples from before and after the divergence rises"),),
    ),
    Cause(
        name="truncated-sequences",
        title="Sequences are cut off at the length limit",
        what=(
            "Examples or completions reach the limit before they end. What is cut off, the answer "
            "or the end token, is neither learnt nor rewarded. A model that never stops looks the "
            "same at any limit."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change="Raise the length limit, or shorten prompts and reward an end of the text",
                expected_effect="the share of sequences at the limit falls below a tenth",
                verify="log the share of sequences that end at the limit",
                if_it_fails="if they run to any limit, the end token is never trained",
            ),
        ),
        confirm_by=(Ask("log the lengths of the completions beside the limit"),),
    ),
)
