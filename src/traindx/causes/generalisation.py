"""Causes that show between training and validation."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import CHECKPOINTS, DATA, DEBUGGING, MODULES, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="overfitting",
        title="The model overfits the training data",
        what=(
            "The validation loss passes its minimum and rises while the training loss keeps "
            "falling: the model fits what is particular to the training examples. The accuracy may "
            "still creep up while the validation loss rises, for confidence grows faster than "
            "correctness. A gap that is there from the first epoch and does not widen is a "
            "difference of data or of mode, not overfitting; a rise of both curves is divergence."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Keep the checkpoint of {best} and stop when the validation loss has not "
                    "improved for a few epochs"
                ),
                expected_effect=(
                    "the reported validation metric is that of the best epoch; later training is "
                    "saved"
                ),
                verify="evaluate that checkpoint again: it reproduces the best logged value",
                if_it_fails=(
                    "if the best epoch comes very early, the model memorises at once, so "
                    "regularise or get more data"
                ),
            ),
            Remedy(
                change=(
                    "Regularise: raise {dropout_raise}, weight decay to 0.01–0.1 with AdamW, and "
                    "augment the training inputs"
                ),
                expected_effect=(
                    "the training loss falls more slowly, the minimum of the validation loss is "
                    "lower and later"
                ),
                verify="compare the minima of the validation loss, not the final values",
                if_it_fails=(
                    "if the minimum does not improve, the limit is data or labels, not "
                    "regularisation"
                ),
            ),
            Remedy(
                change="Add data, or use a smaller or pretrained model",
                expected_effect="the gap between the curves shrinks at equal training loss",
                verify=(
                    "train on half of the data: a clearly worse minimum means that more data will "
                    "help"
                ),
                if_it_fails=(
                    "if it is equal with half of the data, the inputs do not carry more; look at "
                    "the labels"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "log the validation loss once per epoch, on data that share no example with "
                "training",
                "loss/val*",
            ),
            Ask(
                "train with more data or stronger regularisation and compare the validation curves"
            ),
        ),
        defaults={
            "best": "the epoch of the lowest validation loss",
            "dropout_raise": "dropout to 0.1–0.3",
        },
        tailor=facts.all_of(facts.best_validation, facts.dropout),
    ),
    Cause(
        name="data-leakage",
        title="Information from validation reaches training",
        what=(
            "Examples, near-duplicates, groups (one patient, one video) or fitted statistics are "
            "shared between the splits, so validation measures memory. The validation metric is "
            "too good, follows training closely and never turns, and collapses on truly new data. "
            "Scaling, feature selection or vocabulary fitted before the split are the quiet "
            "variants. Validation slightly better than training is no proof: dropout and averaging "
            "over the epoch do that too."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Split first, by group where examples belong together (`GroupShuffleSplit`), "
                    "and fit every statistic on the training part only"
                ),
                expected_effect=(
                    "the validation metric falls to an honest value, and a gap to training appears"
                ),
                verify=(
                    "the intersection of example hashes and of group ids between the splits is "
                    "empty"
                ),
                if_it_fails=(
                    "if the metric stays suspiciously high, a feature encodes the target, so drop "
                    "features one by one"
                ),
            ),
            Remedy(
                change=(
                    "Remove near-duplicates across splits (perceptual hash for images, MinHash for "
                    "text)"
                ),
                expected_effect=(
                    "fewer than 0.1 % of the validation examples have a close twin in training"
                ),
                verify="list the nearest training neighbour of 50 validation examples",
                if_it_fails=(
                    "if twins are legitimate repeats of the domain, split by time or source"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the splitting and preprocessing code", "source"),
            Ask("hash the examples of both splits and count the overlap"),
        ),
    ),
    Cause(
        name="evaluating-on-training-data",
        title="The reported metric is computed on training data",
        what=(
            "Evaluation iterates over the training loader or the training files, so the metric "
            "repeats training performance and says nothing of generalisation. Validation and "
            "training curves coincide, or validation is even better because dropout is off. With "
            "leakage the split exists and is porous; here the evaluated set is the training set."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Pass the held-out loader to evaluation, and name it so: `evaluate(model, "
                    "val_loader)`"
                ),
                expected_effect=(
                    "the validation metric drops to its true value in the first evaluation"
                ),
                verify="`assert set(train_ids).isdisjoint(val_ids)` at start-up",
                if_it_fails="if it is still equal to training, both loaders read the same files",
            ),
            Remedy(
                change=(
                    "Hold out a split if there is none: `torch.utils.data.random_split(data, [0.9, "
                    "0.1], generator=torch.Generator().manual_seed(0))`"
                ),
                expected_effect="a held-out metric exists",
                verify="the lengths of the splits add up to that of the data",
                if_it_fails="if the data have groups or time, split along those",
            ),
        ),
        confirm_by=(
            Ask("send the evaluation code", "source"),
            Ask("print the dataset and its length inside the evaluation"),
        ),
    ),
    Cause(
        name="training-in-eval-mode",
        title="The model trains in eval mode",
        what=(
            "`model.eval()` was called for an evaluation and `model.train()` not after it, so "
            "dropout is off and batch norm uses and never updates its running statistics. Training "
            "goes on and looks plausible; overfitting comes earlier, and networks with batch norm "
            "become unstable or stop improving from the first evaluation on. The point of change "
            "coincides with the first validation, unlike anything the learning rate does."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Call `model.train()` at the start of every training epoch (and after every "
                    "evaluation inside an epoch)"
                ),
                expected_effect=(
                    "running statistics of batch norm change with each step, and dropout is active"
                ),
                verify="`assert model.training` in front of the forward pass of the training loop",
                if_it_fails=(
                    "if some submodule overrides `train()`, or was set to eval by name, list it "
                    "with `[n for n, m in model.named_modules() if not m.training]`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the training loop", "source"),
            Ask("print `model.training` inside the training loop after the first evaluation"),
        ),
        brings_about=("exploding-activations", "overfitting"),
    ),
    Cause(
        name="validation-in-train-mode",
        title="Validation runs in train mode",
        what=(
            "Without `model.eval()` dropout perturbs the predictions and batch norm uses the "
            "statistics of the validation batch, and also folds them into its running averages. "
            "The metric is worse than it should be, differs from one evaluation of the same "
            "weights to the next, and depends on the batch size. `torch.no_grad()` does not change "
            "the mode: the two are independent."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Wrap evaluation: `model.eval()` before it, `with torch.inference_mode():` "
                    "around it, `model.train()` after it"
                ),
                expected_effect=(
                    "two evaluations of one checkpoint agree to the last digit, and the validation "
                    "metric improves"
                ),
                verify="`assert not model.training` inside evaluation",
                if_it_fails=(
                    "if results still differ, the loader shuffles with a batch-dependent metric, "
                    "or the transforms are random"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "evaluate one checkpoint twice; two different results mean that the mode (or an "
                "augmentation) is random"
            ),
        ),
    ),
    Cause(
        name="batchnorm-small-batch",
        title="Batch norm works on too few examples{batch_in_use}",
        what=(
            "Batch statistics over one to about eight examples are noisy, so the running averages "
            "do not describe what training saw: training looks well, evaluation is far worse or "
            'erratic. A last batch of one raises "Expected more than 1 value per channel when '
            'training". It differs from overfitting in that evaluation in train mode, with a '
            "large batch, gives a good result."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Use a normalisation without batch statistics: `nn.GroupNorm(32, channels)` "
                    "for `nn.BatchNorm2d(channels)`"
                ),
                expected_effect="train-mode and eval-mode losses of one checkpoint agree",
                verify="compare both on the training data",
                if_it_fails=(
                    "if they still differ, suspect dropout or another mode-dependent layer"
                ),
            ),
            Remedy(
                change=(
                    "Raise {batch_raise}; across devices "
                    "`nn.SyncBatchNorm.convert_sync_batchnorm(model)`; drop a last batch of one "
                    "with `drop_last=True` in the training loader"
                ),
                expected_effect="the spread of the validation loss between epochs shrinks",
                verify="print the smallest batch that reaches the model",
                if_it_fails=(
                    "if the statistics are stale, not noisy, raise `momentum`, or re-estimate "
                    "them over one pass"
                ),
            ),
        ),
        confirm_by=(
            Ask("evaluate one checkpoint both in eval mode and in train mode with a large batch"),
        ),
        defaults={
            "batch_in_use": "",
            "batch_raise": "the batch per device to 16 or more",
        },
        tailor=facts.batch_size,
    ),
    Cause(
        name="empty-validation",
        title="Validation measures nothing",
        what=(
            "The validation set is empty, has no labels, or produces the same number at every "
            "evaluation: a path that matches no files, a split that rounds to 0, `drop_last=True` "
            "with fewer examples than one batch, a metric whose accumulator is never fed. Signs "
            'are 0, NaN ("mean of empty slice", a division by zero), or a perfectly constant '
            "value. Overfitting and early stopping are then decided blindly."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Make the split non-empty and leave `drop_last` off in the validation loader"
                ),
                expected_effect=(
                    "the metric varies from one evaluation to the next with the weights"
                ),
                verify="`assert len(val_loader) > 0` and that at least two label values occur",
                if_it_fails=(
                    "if examples are there and the value stays, the metric is not fed or not reset"
                ),
            ),
        ),
        confirm_by=(
            Ask("print `len(val_dataset)`, `len(val_loader)` and the labels of its first batch"),
        ),
        brings_about=("unstable-operation",),
    ),
    Cause(
        name="preprocessing-mismatch",
        title="Validation or inference is preprocessed differently from training",
        what=(
            "Training and validation apply another normalisation, resize, colour order, tokenizer "
            "or sampling rate, so validation is off from the first epoch by a constant amount "
            "while training goes well. Overfitting begins at zero gap and widens; true shift of "
            "the data survives when one pipeline is used for both."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Build both pipelines from one function with one flag for augmentation, and "
                    "keep mean, standard deviation, size and tokenizer in one place"
                ),
                expected_effect=(
                    "training examples through the validation pipeline score as in training"
                ),
                verify=(
                    "print mean and standard deviation of a batch from both loaders: equal within "
                    "10 %"
                ),
                if_it_fails=(
                    "if statistics agree and the gap stays, the examples themselves differ"
                ),
            ),
            Remedy(
                change=(
                    "Save the preprocessing parameters with the checkpoint and load them for "
                    "inference"
                ),
                expected_effect=(
                    "inference on a validation example reproduces the validation prediction"
                ),
                verify="compare the tensors that enter the model, `torch.equal`",
                if_it_fails="if they are equal, mode or dtype differs at inference",
            ),
        ),
        confirm_by=(
            Ask(
                "evaluate on training examples through the validation pipeline; a bad result "
                "there settles it"
            ),
        ),
        brings_about=("distribution-shift", "unnormalised-inputs"),
    ),
    Cause(
        name="metric-bug",
        title="The reported metric is computed wrongly",
        what=(
            "Training is fine and the number is not: an accumulator that is never reset, argmax "
            "over a single logit (always class 0), a comparison (N, 1) == (N) that broadcasts to "
            "(N, N), batch means averaged over unequal batches, percentages mixed with fractions. "
            "Values that cannot be (above 1, exactly 0.5, monotone by construction) or that "
            "contradict a falling loss give it away."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Recompute it from stored predictions with a reference implementation "
                    "(`sklearn.metrics`, `torchmetrics`) and replace the own one"
                ),
                expected_effect=(
                    "both agree on the same predictions, and the curve follows the loss"
                ),
                verify="a perfect prediction gives the best value, a shuffled one chance level",
                if_it_fails="if they agree, the metric was right and the model is not",
            ),
            Remedy(
                change=(
                    "Reset per evaluation and weight by example: `correct += (pred == "
                    "y).sum().item(); total += y.numel()` with `assert pred.shape == y.shape`"
                ),
                expected_effect=(
                    "the value no longer depends on batch size or on earlier evaluations"
                ),
                verify="evaluate with batch sizes 1 and 64: the same value",
                if_it_fails="if it still depends on it, the model is in train mode",
            ),
        ),
        confirm_by=(
            Ask("send the metric's code", "source"),
            Ask("compute the metric for one batch by hand and compare"),
        ),
    ),
    Cause(
        name="distribution-shift",
        title="Training and validation data differ in kind",
        what=(
            "From the first epoch validation is much worse than training and the gap stays about "
            "constant: the two come from other sources, periods, classes or label conventions. "
            "With overfitting the gap opens later; with a wrong pipeline, training examples fail "
            "too when sent through the validation pipeline."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Draw both splits from one pool, stratified by class and source "
                    "(`train_test_split(..., stratify=y)`)"
                ),
                expected_effect="the gap in the first epoch shrinks to noise",
                verify="the origin classifier is at chance, AUC near 0.5",
                if_it_fails=(
                    "if the gap stays with one pool, suspect the pipeline, the mode or the metric"
                ),
            ),
            Remedy(
                change=(
                    "If the shift is real, add data from the target distribution to training, or "
                    "weight examples towards it"
                ),
                expected_effect="validation improves while training loss stays equal",
                verify="report the metric per source",
                if_it_fails="if no source improves, the labels follow another convention",
            ),
        ),
        confirm_by=(
            Ask(
                "train a small classifier to tell training from validation inputs; well above "
                "chance settles it"
            ),
        ),
    ),
    Cause(
        name="class-imbalance",
        title="The classes are so unequal that the majority decides the loss",
        what=(
            "With one class holding most examples, always predicting it costs little, and accuracy "
            "equals its share: 95 % of nothing learnt. Balanced accuracy, recall of the rare class "
            "or the confusion matrix show it. If rare classes are ignored although the classes are "
            "balanced, that is `class-collapse` with another origin."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Weight the loss by inverse frequency: `nn.CrossEntropyLoss(weight=total / "
                    "(classes * counts))`, or `pos_weight=negatives / positives` for "
                    "BCEWithLogitsLoss"
                ),
                expected_effect=(
                    "recall of the rare classes leaves 0 in the first epochs; plain accuracy may "
                    "fall"
                ),
                verify="log recall per class and balanced accuracy",
                if_it_fails=(
                    "if rare recall stays at 0, there are too few examples to learn from, or they "
                    "are mislabelled"
                ),
            ),
            Remedy(
                change=(
                    "Sample by class: `WeightedRandomSampler(1 / counts[labels], "
                    "num_samples=len(labels))`, not together with the weighted loss"
                ),
                expected_effect="the label counts of a batch are about equal",
                verify="`torch.bincount` over an epoch of labels",
                if_it_fails="if rare examples are memorised, add augmentation or data",
            ),
        ),
        confirm_by=(
            Ask("send a confusion matrix", "confusions"),
            Ask("send the label counts"),
        ),
        brings_about=("class-collapse",),
    ),
    Cause(
        name="label-noise",
        title="Many labels are wrong",
        what=(
            "A share of the labels is wrong, or labels were shuffled against their inputs. The "
            "training loss falls slowly and levels off high, and then memorises; validation peaks "
            "early and falls. With fully shuffled labels validation never leaves chance. Low "
            "capacity does not memorise; overfitting with clean labels starts from a good "
            "validation metric."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Correct or drop what is wrong among the examples of the highest loss, found "
                    "with out-of-fold predictions (the method of cleanlab)"
                ),
                expected_effect=(
                    "the training loss levels off lower, and the best validation metric rises"
                ),
                verify="the share of wrong labels in a random sample of 100 before and after",
                if_it_fails=(
                    "if a random sample is clean, inputs and labels are misaligned in the "
                    "pipeline, not wrong in the files"
                ),
            ),
            Remedy(
                change=(
                    "Make the loss tolerant: `nn.CrossEntropyLoss(label_smoothing=0.1)`, and stop "
                    "early"
                ),
                expected_effect="the validation loss turns later and less steeply",
                verify="compare minima of the validation loss",
                if_it_fails="if nothing changes, noise depends on the input, so relabel",
            ),
        ),
        confirm_by=(
            Ask(
                "look at the 50 training examples with the highest loss after an early epoch, and "
                "count wrong labels"
            ),
        ),
        brings_about=("overfitting",),
    ),
    Cause(
        name="catastrophic-forgetting",
        title="Learning the new task erases the old one",
        what=(
            "The metric of an earlier task or of the pretrained ability falls as the new task is "
            "learnt, because nothing in the loss protects it. The new task's own curve is healthy, "
            "which separates it from divergence; the old metric falls from the moment the new data "
            "begin."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Replay: mix 5 to 20 % of the old data into every batch",
                expected_effect="the old metric stays within some per cent while the new one rises",
                verify="log both metrics at every evaluation",
                if_it_fails=(
                    "if the old metric still falls, its share or its loss weight is too small"
                ),
            ),
            Remedy(
                change=(
                    "Change fewer weights: adapters (LoRA), frozen lower layers, or reduce {lr_cut}"
                ),
                expected_effect=(
                    "the distance of the weights from the old checkpoint shrinks, the old metric "
                    "holds"
                ),
                verify="the norm of the weight difference per layer",
                if_it_fails="if the new task needs those weights, replay, or separate heads",
            ),
        ),
        confirm_by=(Ask("evaluate the old task at each checkpoint"),),
        defaults={
            "lr_cut": "the learning rate tenfold for fine-tuning",
        },
        tailor=facts.learning_rate,
    ),
    Cause(
        name="seed-variance",
        title="The difference between runs is within the noise of the seed",
        what=(
            "Runs that differ only in the seed scatter by as much as the effect that is claimed. A "
            "single better run proves nothing then. It concerns the comparison, not the health of "
            "any run; runs that differ with one and the same seed are another matter "
            "(`unseeded-randomness`, `nondeterministic-operation`)."
        ),
        severity=Severity.LOW,
        specialist=CHECKPOINTS,
        remedies=(
            Remedy(
                change=(
                    "Compare means over at least five seeds per variant, with their standard "
                    "error, and pair the seeds"
                ),
                expected_effect=(
                    "the claim is stated as mean ± standard error, and holds or falls on that"
                ),
                verify="a paired t-test or bootstrap over seeds",
                if_it_fails=(
                    "if the interval contains 0, there is no measurable effect at this number of "
                    "seeds"
                ),
            ),
            Remedy(
                change=(
                    "Reduce the scatter: larger validation set, averaged weights "
                    "(`torch.optim.swa_utils.AveragedModel`), lower final learning rate"
                ),
                expected_effect="the standard deviation over seeds shrinks",
                verify="recompute it over the same seeds",
                if_it_fails=(
                    "if the task is bimodal, some seeds fail outright, so look at a failed one on "
                    "its own"
                ),
            ),
        ),
        confirm_by=(Ask("rerun each variant with at least five seeds and send the final metrics"),),
    ),
    Cause(
        name="insufficient-training",
        title="Training stopped while it still improved",
        what=(
            "The run ended at its pace: the last evaluations gain as much as those before, the "
            "learning rate is still high or has not even been warmed up. It is mistaken for a "
            "model that is too small."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Train for several times as many steps, the schedule set to that number",
                expected_effect="loss and metrics go on improving, and level off in the end",
                verify="the last tenth of the run gains little of what the first gained",
                if_it_fails="if it levels off early, the learning rate or the model limits it",
            ),
        ),
        confirm_by=(Ask("train for three times as many steps"),),
    ),
    Cause(
        name="excessive-regularisation",
        title="Regularisation is so strong that training itself stays bad",
        what=(
            "Dropout, weight decay, label smoothing or augmentation hold the training loss up. "
            "The loss of validation is as high or lower, and neither falls. It is mistaken for a "
            "model that is too small."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Halve the strongest regulariser, or switch it off for a short run",
                expected_effect="the training loss falls below where it stood",
                verify="compare the training loss of both runs over the same steps",
                if_it_fails="if it does not fall, the model or the learning rate limits it",
            ),
        ),
        confirm_by=(Ask("a short run without dropout, decay, smoothing and augmentation"),),
    ),
)
