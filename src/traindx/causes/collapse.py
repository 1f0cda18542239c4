"""Causes in which outputs or representations lose their variety."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DEBUGGING, MODULES, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="class-collapse",
        title="The model predicts one class for every input",
        what=(
            "All inputs get the same class and accuracy equals the share of that class. Often it "
            "is the end of another fault: imbalance, a rate that is too high, dead units, inputs "
            "that carry nothing. Take it as a cause of its own only where those are ruled out. If "
            "the logits are exactly equal for all inputs, the input does not reach the output; if "
            "they vary a little, the model has learnt the prior alone."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Test whether the input matters: feed two very different batches and compare "
                    "logits; then train on 20 examples that cover {classes} until they are fitted"
                ),
                expected_effect="20 examples are fitted to accuracy 1.0 within some hundred steps",
                verify="`model(x).std(dim=0)` is well above 0",
                if_it_fails=(
                    "if it cannot fit 20 examples, the input is lost (dead layer, wrong "
                    "normalisation) or the labels are constant"
                ),
            ),
            Remedy(
                change=(
                    "Start the output bias at the class prior, `bias = log(counts / total)`, and "
                    "train the rest with the rate halved"
                ),
                expected_effect="the loss starts at the entropy of the prior and goes below it",
                verify="the loss at step 0 equals that entropy",
                if_it_fails=(
                    "if it stays at the entropy, the features hold no information on the class"
                ),
            ),
        ),
        confirm_by=(
            Ask("send a confusion matrix", "confusions"),
            Ask("print the standard deviation of the logits over a batch"),
        ),
        defaults={
            "classes": "all classes",
        },
        tailor=facts.classes,
    ),
    Cause(
        name="constant-prediction",
        title="The regression model predicts one value for every input",
        what=(
            "The output is (nearly) the mean of the targets, the loss equals their variance and R² "
            "is 0. It is what a model does that sees no usable input, whose targets are on a scale "
            "it cannot reach, or whose loss broadcasts. The spread of the predictions tells: "
            "exactly 0 means that the input is cut off, small but real means that it learns slowly."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change='Fit 20 examples alone: it separates "cannot" from "does not yet"',
                expected_effect=(
                    "the training loss of the 20 examples goes to 0, and predictions vary as the "
                    "targets do"
                ),
                verify="`pred.std() / y.std()` near 1",
                if_it_fails=(
                    "if it stays at 0, check shapes in the loss, dead units, and that inputs differ"
                ),
            ),
            Remedy(
                change=(
                    "Standardise inputs and targets with training statistics, and undo it for "
                    "reporting"
                ),
                expected_effect="R² leaves 0 in the first epoch",
                verify="mean 0 and standard deviation 1 of both, printed from a batch",
                if_it_fails=(
                    "if it still predicts the mean, the inputs do not determine the target"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the standard deviation of predictions and targets over one validation batch"),
        ),
    ),
    Cause(
        name="repetition-collapse",
        title="The language model repeats one token or a short cycle",
        what=(
            "Every prompt leads to the same token or loop. With greedy decoding a healthy small "
            "model loops too, so judge by sampled text and by the entropy of the next-token "
            "distribution: near 0 at every position means that the model itself collapsed. "
            "Training loss may have fallen well, by learning the most frequent token alone; a "
            "shift error between inputs and labels teaches it to copy."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Check the targets: labels shifted by exactly one (`logits[:, :-1]` against "
                    "`ids[:, 1:]`, once, for HF models shift inside), padding set to −100"
                ),
                expected_effect=(
                    "the loss after some hundred steps lies below the unigram entropy of the corpus"
                ),
                verify="decode ten input–label pairs and read them side by side",
                if_it_fails=(
                    "if targets are right, count parameters outside the embeddings; a body that "
                    "is too small learns frequencies only"
                ),
            ),
            Remedy(
                change="Sample to look at it: temperature 0.8–1.0 and top-p 0.9 in place of greedy",
                expected_effect="varied text from a sound model",
                verify="distinct-2 over 100 samples",
                if_it_fails="if sampled text repeats too, it is the model, not the decoding",
            ),
        ),
        confirm_by=(
            Ask(
                "send samples at temperature 1 for five prompts, with the entropy of the "
                "next-token distribution"
            ),
        ),
    ),
    Cause(
        name="generator-mode-collapse",
        title="The generator produces few distinct samples",
        what=(
            "The generator finds a few outputs that fool the discriminator and keeps to them; or "
            "the discriminator wins, its loss goes to 0, and the generator gets no gradient. "
            "Samples for different noise look alike. A generator loss that wanders is normal for "
            "GANs and proves nothing; variety between samples is what counts."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Weaken the discriminator's advantage: its learning rate to a quarter of the "
                    "present one or fewer of its steps, and R1 gradient penalty or spectral norm "
                    "(`torch.nn.utils.parametrizations.spectral_norm`)"
                ),
                expected_effect="the discriminator's accuracy returns to 60–80 %, and samples vary",
                verify="mean pairwise distance of samples, logged per epoch",
                if_it_fails=(
                    "if variety stays low, the generator ignores its noise; check how the noise "
                    "enters"
                ),
            ),
            Remedy(
                change=(
                    "Let the discriminator see variety: minibatch standard deviation as an extra "
                    "channel before its last layer"
                ),
                expected_effect="variety of the samples rises within some epochs",
                verify="FID or pairwise distance against real data",
                if_it_fails="change the objective (Wasserstein with gradient penalty)",
            ),
        ),
        confirm_by=(
            Ask("log both losses", "loss/train/*"),
            Ask("send a grid of 64 samples"),
        ),
    ),
    Cause(
        name="posterior-collapse",
        title="The variational posterior has collapsed to the prior",
        what=(
            "The KL term goes to 0: the decoder models the data without the latent code and the "
            "encoder gives up. Reconstruction stays at the level of a code-free model, and samples "
            "ignore z. A small KL that still rises is not collapse; look at the number of active "
            "latent dimensions."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Anneal the weight of the KL term from 0 to 1 over the first tenth or third of "
                    "training"
                ),
                expected_effect=(
                    "KL stays above 0 and settles at some nats, reconstruction improves"
                ),
                verify="count the dimensions with KL above 0.01",
                if_it_fails=(
                    "if it drops to 0 when the weight nears 1, use free bits "
                    "(`kl_per_dim.maximum(torch.tensor(0.1))`)"
                ),
            ),
            Remedy(
                change="Weaken the decoder: word dropout, smaller context, fewer layers",
                expected_effect=(
                    "the decoder needs z: shuffling z within the batch raises the reconstruction "
                    "loss"
                ),
                verify="compare reconstruction with true and shuffled z",
                if_it_fails=(
                    "if there is no difference, z does not reach the decoder; check the code"
                ),
            ),
        ),
        confirm_by=(
            Ask("log KL and reconstruction loss separately", "kl/*|loss/*/kl*"),
            Ask("log KL per latent dimension"),
        ),
    ),
    Cause(
        name="representation-collapse",
        title="Embeddings have become constant or low-rank",
        what=(
            "All inputs map to nearly one vector, or the embeddings span a few directions only. In "
            "self-supervised training without negatives or stop-gradient that is the trivial "
            "optimum, so the loss looks excellent. The singular values of a batch of embeddings "
            "show it; a low loss with chance-level probe accuracy confirms it."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Restore what prevents the trivial solution: stop-gradient on the target "
                    "branch, in-batch negatives of a sufficient number, or a variance–covariance "
                    "term (VICReg)"
                ),
                expected_effect=(
                    "the per-dimension standard deviation of normalised embeddings stays near "
                    "1/sqrt(d), and the rank stays up"
                ),
                verify="log `z.std(0).mean()` and the singular values per epoch",
                if_it_fails=(
                    "if it still falls, both branches see identical views; check augmentation"
                ),
            ),
            Remedy(
                change=(
                    "Check temperature and normalisation: `F.normalize(z, dim=-1)`, temperature "
                    "0.05 to 0.5"
                ),
                expected_effect="the contrastive loss starts near log(batch size) and falls slowly",
                verify="the loss at step 0",
                if_it_fails="if it starts at 0, positives and negatives are the same tensors",
            ),
        ),
        confirm_by=(
            Ask(
                "send the standard deviation per dimension and the effective rank of embeddings "
                "of 1,000 inputs"
            ),
        ),
        brings_about=("class-collapse", "constant-prediction"),
    ),
    Cause(
        name="expert-collapse",
        title="A few experts take all tokens",
        what=(
            "The router prefers the experts that are ahead, so these learn more and are preferred "
            "again; the others get no tokens and no gradient. The model then has the capacity of "
            "the few, and tokens over the capacity limit are dropped. Unequal use by kind of token "
            "is intended; what counts is the share over a large mixed batch."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Add a load-balancing loss (`experts * (fraction * probability).sum()`, weight "
                    "0.01) or the bias-based balancing that needs none"
                ),
                expected_effect=(
                    "the busiest expert takes less than twice the mean share after some hundred "
                    "steps"
                ),
                verify="the entropy of the share per layer is near log(experts)",
                if_it_fails="if balance comes with a worse loss, the weight is too high",
            ),
            Remedy(
                change=(
                    "Add noise to router logits, keep the router in fp32, and use a router z-loss "
                    "of 1e-3"
                ),
                expected_effect=(
                    "early choices stay reversible: every expert gets tokens in the first hundred "
                    "steps"
                ),
                verify="count experts without tokens",
                if_it_fails=(
                    "if the router's inputs are constant, look for representation collapse below"
                ),
            ),
        ),
        confirm_by=(Ask("log the share of tokens per expert for every layer"),),
        brings_about=("ddp-unused-parameters", "insufficient-capacity"),
    ),
    Cause(
        name="policy-entropy-collapse",
        title="The policy becomes deterministic too early",
        what=(
            "The entropy of the action distribution falls to near 0 while the return is still "
            "poor: the agent no longer explores and repeats a mediocre habit. Falling entropy with "
            "a rising return is learning. Too large updates, reward scale and a missing entropy "
            "term lead here."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Add or raise the entropy bonus: coefficient 0.01 (discrete actions), or an "
                    "automatic temperature as in SAC"
                ),
                expected_effect=(
                    "the entropy declines slowly over the run rather than in the first tenth"
                ),
                verify="plot entropy against return",
                if_it_fails=(
                    "if entropy stays up and the return does not rise, the reward carries no signal"
                ),
            ),
            Remedy(
                change=(
                    "Limit the update: reduce {lr_cut}, fewer epochs per batch, stop at a KL of "
                    "0.02, normalise advantages"
                ),
                expected_effect="the KL per update stays below 0.02",
                verify="log `approx_kl` and the clip fraction",
                if_it_fails=(
                    "if KL is small and entropy still falls, the reward favours one action; check "
                    "its design"
                ),
            ),
        ),
        confirm_by=(
            Ask("log the entropy of the policy", "entropy/*|loss/train/*entropy"),
            Ask("log the return", "reward/*"),
            Ask("log the KL between successive policies"),
        ),
        defaults={
            "lr_cut": "the learning rate by half",
        },
        tailor=facts.learning_rate,
    ),
    Cause(
        name="halting-collapse",
        title="All tokens halt at the same step",
        what=(
            "In adaptive computation the halting scores of all tokens become equal, so every token "
            "takes one and the same number of steps and the variance over steps is 0. A diversity "
            'or ponder term that takes a variance over a single value then warns "var(): degrees '
            'of freedom is <= 0" and returns NaN. That warning alone can also come from a batch '
            "of one: look at the distribution of halting steps."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Add a term that rewards different halting (the negative entropy of the mean "
                    "halting distribution, weight 0.01), or a KL to a geometric prior as in "
                    "PonderNet"
                ),
                expected_effect=(
                    "halting steps spread over at least two or three values in the first thousand "
                    "steps"
                ),
                verify="the variance of halting steps over a batch is above 0",
                if_it_fails=(
                    "if it returns to 0, the ponder cost dominates the task loss, so lower its "
                    "weight"
                ),
            ),
            Remedy(
                change=(
                    "Initialise the halting bias so that tokens begin with several steps (bias −1 "
                    "to −3), and take the variance over all tokens of the batch with `correction=0`"
                ),
                expected_effect=(
                    "the warning is gone because more than one value enters, and the loss is finite"
                ),
                verify="print the number of elements that enter `var`",
                if_it_fails="if one element remains, the reduction runs over the wrong dimension",
            ),
        ),
        confirm_by=(
            Ask("send the halting head's code", "source"),
            Ask("log the histogram of halting steps per batch"),
        ),
        brings_about=("unstable-operation",),
    ),
)
