"""Causes in what is fed to the model."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DATA, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="unnormalised-inputs",
        title="The inputs are on a scale the model cannot use well",
        what=(
            "Raw pixels from 0 to 255, features in thousands, or a large common offset make some "
            "directions of the loss far steeper than others: steps that suit one are too large or "
            "too small for the rest. Either it diverges at usual learning rates, or learns slowly; "
            "first-layer units saturate or die. Tree models do not mind, networks do. The mean and "
            "standard deviation of a batch settle it."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Standardise with training statistics: `(x - mean) / (std + 1e-8)`; images "
                    "`x.float() / 255` and per-channel normalisation; heavy-tailed features by "
                    "`log1p` first"
                ),
                expected_effect=(
                    "a mean near 0 and standard deviation near 1; the loss falls from the first "
                    "hundred steps on at usual rates"
                ),
                verify="print the statistics of a batch as it enters the model",
                if_it_fails=(
                    "if they are right and training is unchanged, look at targets and learning rate"
                ),
            ),
            Remedy(
                change=(
                    "Put a `nn.BatchNorm1d(features)` (or LayerNorm) in front of the first layer "
                    "where statistics are not known beforehand"
                ),
                expected_effect="scale no longer matters for the first layer",
                verify="the first layer's activations have a standard deviation of order 1",
                if_it_fails=(
                    "if single features are extreme, look for sentinel values such as −999"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "print mean, standard deviation, minimum and maximum per feature or channel of "
                "one batch"
            ),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "dead-relu",
            "exploding-activations",
            "fp16-overflow",
            "loss-scale-collapse",
            "lr-too-high",
            "lr-too-low",
            "saturated-activations",
            "unstable-operation",
            "vanishing-gradients",
        ),
    ),
    Cause(
        name="unnormalised-targets",
        title="The regression targets are on a scale the optimizer cannot reach",
        what=(
            "Targets in the thousands, or far from 0, need large output weights that small steps "
            "take very long to reach, and squared errors are huge at first: gradient norms of "
            "thousands, spikes, or a prediction that creeps towards the mean. Tiny targets (1e-4) "
            "make every loss look good. Compare the loss with the variance of the targets: only "
            "the ratio says anything."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Standardise targets with training statistics, and undo it for reporting: `y_n "
                    "= (y - y_mean) / y_std`. Where a sigmoid or tanh ends the model, scale them "
                    "into its range instead (0 … 1, −1 … 1), or take it off the output"
                ),
                expected_effect=(
                    "the loss starts near 1 (below it for scaled targets) and falls; gradient "
                    "norms are of order 1"
                ),
                verify="the loss at step 0 for standardised targets is about 1",
                if_it_fails=(
                    "if it stays at 1, the inputs do not determine the target, or it predicts a "
                    "constant"
                ),
            ),
            Remedy(
                change="Predict the logarithm of positive targets over several orders of magnitude",
                expected_effect="relative errors count alike at all scales",
                verify="the error by decile of the target is even",
                if_it_fails="if zeros or negative values occur, use `asinh`",
            ),
        ),
        confirm_by=(Ask("print mean and standard deviation of the training targets"),),
        brings_about=(
            "constant-prediction",
            "exploding-activations",
            "fp16-overflow",
            "lr-too-high",
            "lr-too-low",
            "missing-gradient-clipping",
        ),
    ),
    Cause(
        name="degenerate-batch",
        title="A batch has constant inputs or a single label",
        what=(
            "All inputs of a batch are equal or zero (a failed decode that returns black images, a "
            "mask over everything, a cache that repeats one example), or all labels are the same. "
            "Statistics over the batch are then 0/0, contrastive losses have no negatives, and the "
            "model learns a constant. In class-sorted data each batch has one label by order: see "
            "`unshuffled-training-data`."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Repair what makes them: let decoding errors raise with the path, and check "
                    "masks and indexing of the dataset"
                ),
                expected_effect="examples differ, and labels vary within a batch",
                verify="over an epoch no batch has `x.std() == 0` or a single label",
                if_it_fails="if only single batches are constant, drop or repair those records",
            ),
            Remedy(
                change="Check that `__getitem__` depends on its index",
                expected_effect="`dataset[0]` and `dataset[1]` differ",
                verify="`torch.equal(dataset[0][0], dataset[1][0])` is False",
                if_it_fails=(
                    "if they differ and batches are constant, suspect the collate function"
                ),
            ),
        ),
        confirm_by=(
            Ask("look at one batch by `x.std(dim=0)`, `y.unique()`, and a picture of four inputs"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "generator-mode-collapse",
            "unstable-operation",
        ),
    ),
    Cause(
        name="unshuffled-training-data",
        title="The training data come in a fixed or sorted order",
        what=(
            "With data sorted by class, source or time, each stretch of steps teaches one thing "
            "and unteaches another: the loss is a sawtooth with a period of one epoch, validation "
            "swings, the last class read wins. A fixed but random order is milder: only patterns "
            "repeat. Step-like loss drops at the start of each epoch with shuffled data are "
            "memorisation, not order."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "`DataLoader(train_set, batch_size=..., shuffle=True)`; with streaming data a "
                    "shuffle buffer of thousands plus shuffled shards"
                ),
                expected_effect=(
                    "the sawtooth vanishes in the first epoch, and validation is smooth"
                ),
                verify="the label counts of single batches resemble those of the whole",
                if_it_fails=(
                    "if the period stays, a sampler replaces shuffling, or shards are read in order"
                ),
            ),
            Remedy(
                change=(
                    "For time series shuffle windows, not the split: cut by time first, then "
                    "shuffle the training windows"
                ),
                expected_effect="batches mix periods without leakage",
                verify="the largest training time is below the smallest validation time",
                if_it_fails="if the drift is real, weight recent data",
            ),
        ),
        confirm_by=(
            Ask("send the line that builds the training loader", "source"),
            Ask("print the labels of the first ten batches"),
        ),
        brings_about=(
            "catastrophic-forgetting",
            "class-collapse",
            "data-distribution-change",
            "degenerate-batch",
        ),
    ),
    Cause(
        name="prompt-in-loss",
        title="The prompt is counted in the loss of an instruction-tuned model",
        what=(
            "Only the answer is to be learnt, and the labels of the prompt are not −100: the "
            "collator made them anew, or nothing masks them. The model learns to write questions, "
            "and the loss is that of both."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Keep the dataset's labels: `DataCollatorForSeq2Seq(tokenizer)` or "
                    "`default_data_collator` instead of `DataCollatorForLanguageModeling`; set the "
                    "labels of the prompt to −100"
                ),
                expected_effect="the loss counts answers only, and answers get better",
                verify="decode `labels[labels != -100]` of a batch: only answers appear",
                if_it_fails=(
                    "if prompts still appear, the masking is done before a step that makes the "
                    "labels again; look for a `map` or a template behind it"
                ),
            ),
        ),
        confirm_by=(Ask("a batch whose labels are −100 in every position of the prompt"),),
    ),
    Cause(
        name="padding-in-loss",
        title="Padding is counted in the loss, or all targets are ignored",
        what=(
            "Pad tokens that count teach the model to predict padding: the loss looks excellent, "
            "falls with more padding, and generated text ends at once or repeats the pad token. "
            "The opposite, all positions set to the ignore value, gives 0/0 = NaN. Mean over "
            "positions makes the loss depend on the padding ratio of the batch."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Ignore padding: `nn.CrossEntropyLoss(ignore_index=pad_id)`, or set padded "
                    "labels to −100; where pad equals eos, mask by attention mask instead of by id"
                ),
                expected_effect=(
                    "the loss rises to its honest value and no longer depends on the padding"
                ),
                verify="pad a batch by 100 more positions: the same loss",
                if_it_fails=(
                    "if it still depends on it, the mean divides by all positions; divide by the "
                    "counted ones"
                ),
            ),
            Remedy(
                change=(
                    "Make sure that some targets count: check truncation that cuts the answer off "
                    "and templates that mask everything"
                ),
                expected_effect="at least one counted target per example",
                verify="`(labels != -100).sum(-1).min() > 0` in the collate function",
                if_it_fails="if empty examples remain, drop them in preprocessing",
            ),
        ),
        confirm_by=(
            Ask(
                "print the share of padding among the counted targets of one batch, and the "
                "number of targets that are not ignored"
            ),
        ),
        brings_about=("class-collapse", "repetition-collapse", "unstable-operation"),
    ),
    Cause(
        name="augmentation-in-validation",
        title="Validation data are augmented at random",
        what=(
            "Random crops, flips, noise or mixing are applied in validation, so the metric is "
            "noisy and pessimistic: two evaluations of one checkpoint differ. Usually one dataset "
            "object with training transforms was split in two. With dropout left on it looks the "
            "same; `model.eval()` separates the two."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Build two datasets with their own transforms over disjoint indices: "
                    "`Subset(ImageFolder(root, eval_transform), val_idx)`"
                ),
                expected_effect="`val_set[0]` is the same each time; two evaluations agree",
                verify="`torch.equal(val_set[0][0], val_set[0][0])`",
                if_it_fails=(
                    "if it is equal and evaluations differ, suspect the mode or a batch-dependent "
                    "metric"
                ),
            ),
        ),
        confirm_by=(Ask("load the same validation example twice; a difference settles it"),),
        brings_about=("distribution-shift", "preprocessing-mismatch"),
    ),
    Cause(
        name="misaligned-labels",
        title="Inputs and labels are out of step",
        what=(
            "Inputs and labels are paired wrongly: sorted differently, shuffled separately, offset "
            "by one, joined on the wrong key, or flipped in the collate function. Training on it "
            "is training on noise: training loss falls only by memorising and validation stays at "
            "chance. With label noise a part is right; here nearly none is."
        ),
        severity=Severity.CRITICAL,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Pair by key, once, before any shuffling, and shuffle the pairs: a table of "
                    "(path, label) rows"
                ),
                expected_effect=(
                    "20 of 20 looked-at examples are right, and validation leaves chance in the "
                    "first epoch"
                ),
                verify="print `path, label` of ten items from the dataset itself",
                if_it_fails=(
                    "if pairs are right in the dataset, the collate function or an augmentation "
                    "(a flip of the image without its box or mask) separates them"
                ),
            ),
            Remedy(
                change="For sequences check the offset: targets are inputs shifted by exactly one",
                expected_effect="the loss falls below that of a unigram model",
                verify="decode inputs and targets side by side",
                if_it_fails=(
                    "if the offset is right, the model sees its own target (missing causal mask)"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "show 20 examples with their labels as they enter the model, and count how many "
                "are right"
            ),
        ),
        brings_about=("class-collapse", "constant-prediction", "label-noise", "overfitting"),
    ),
    Cause(
        name="duplicate-examples",
        title="Training examples are in the data several times",
        what=(
            "Rows that are read, joined or collected more than once weigh as much more in the loss "
            "as there are copies: the model fits what is repeated, epochs are longer than needed, "
            "and copies on both sides of a later split leak. The length of the dataset against the "
            "number of rows on disk settles it."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Empty the list that collects the rows of a file before the next one, or add "
                    "each row once; drop exact copies where the source itself repeats them"
                ),
                expected_effect="the dataset is as long as its sources together",
                verify="compare `len(dataset)` with the number of rows on disk, and count copies",
                if_it_fails="if copies remain, look for overlapping file patterns or joins",
            ),
        ),
        confirm_by=(Ask("count the distinct examples of the training data"),),
        brings_about=("data-leakage", "overfitting"),
    ),
    Cause(
        name="worker-crash",
        title="A data-loader worker died{worker_fact}",
        what=(
            '"DataLoader worker (pid …) is killed by signal" or "exited unexpectedly" hides '
            "the reason: signal 9 is the out-of-memory killer, signal 7 (Bus error) a full "
            "/dev/shm, signal 11 a crash in native code; an exception in the dataset is re-raised "
            "with the worker's own traceback above. Start methods other than fork demand `if "
            '__name__ == "__main__":`.'
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Run once with `num_workers=0`: the exception then appears at its own line; "
                    "repair the record or the code it names"
                ),
                expected_effect="an epoch passes without workers, then with them",
                verify="iterate over the whole loader without a model",
                if_it_fails=(
                    "if it does not fail without workers, suspect memory, shared memory or "
                    "fork-safety"
                ),
            ),
            Remedy(
                change=(
                    "Open files, databases and CUDA in the worker, not in `__init__`: lazily at "
                    'the first `__getitem__`; or `multiprocessing_context="spawn"`'
                ),
                expected_effect="no handles are shared over a fork",
                verify="an epoch with several workers passes",
                if_it_fails="lower memory use after signal 9, enlarge /dev/shm after signal 7",
            ),
        ),
        confirm_by=(Ask("rerun with `num_workers=0` and send that traceback"),),
        brings_about=("rank-failed-first",),
        defaults={
            "worker_fact": "",
        },
        tailor=facts.worker,
    ),
    Cause(
        name="stale-cache",
        title="A cache keeps giving what was computed before a setting changed",
        what=(
            "Results are kept under a key that leaves out something they depend on: a cached "
            "method of an object whose attributes change, a dictionary by index, a file of "
            "features under one name for all settings. What comes after the change still gets the "
            "old results, and nothing fails."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Make everything the result depends on part of the key: an argument of the "
                    "cached function, or part of the file's name"
                ),
                expected_effect="the first batch after a change differs from the one before it",
                verify="print the mean of one example before and after the setting changes",
                if_it_fails="clear the cache where the setting changes, and remove old files",
            ),
        ),
        confirm_by=(Ask("send one example as the model sees it, before and after the change"),),
    ),
)
