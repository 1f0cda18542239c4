"""Causes in what the gradient has to work with: weights, units, objective, batches."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DATA, DEBUGGING, MODULES, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="vanishing-gradients",
        title="Gradients fade towards the input layers",
        what=(
            "Each layer multiplies the gradient by less than one, so the first layers receive "
            "thousands of times less than the last and stay at their initial values. Saturating "
            "activations, small initial weights, depth without residual paths and long recurrences "
            "do this. Look at the ratio along depth: a gradient that is small everywhere points to "
            "the loss or the data, one that is exactly zero from a certain layer on points to a "
            "cut graph or frozen parameters."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Replace sigmoid or tanh in hidden layers by ReLU or GELU with the matching "
                    "initialisation (`nn.init.kaiming_normal_`)"
                ),
                expected_effect=(
                    "per-layer gradient norms lie within two orders of magnitude, and the first "
                    "layers move"
                ),
                verify="print `p.grad.norm() / p.norm()` for each layer after one backward pass",
                if_it_fails="if the fade is gradual over many layers, add residual connections",
            ),
            Remedy(
                change=(
                    "Add a residual path and normalisation around each block: `x = x + "
                    "block(norm(x))`; for recurrent networks use an LSTM or GRU with forget-gate "
                    "bias 1"
                ),
                expected_effect=(
                    "the gradient of the first block is of the order of that of the last"
                ),
                verify="compare first and last block at step 0",
                if_it_fails="if the loss itself is flat, check softmax, labels and target scale",
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which records the gradient norm of every "
                "layer",
                "layers/*/grad_norm|recording",
            ),
            Ask("train a version with half the depth and compare"),
        ),
        brings_about=("class-collapse", "constant-prediction"),
    ),
    Cause(
        name="bad-initialisation",
        title="The initial weights are unusable",
        what=(
            "Weights start at zero, at one constant, or at a wrong scale. Equal weights give equal "
            "gradients, so the units of a layer never become different; weights that are too large "
            "saturate or overflow, weights that are too small fade. The loss at step 0 tells: a "
            "classifier should start near log(number of classes), and a value many times that "
            "means logits far too large. PyTorch's own defaults are sound, so look for `init` "
            "code, raw `torch.empty` or `torch.zeros` parameters."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Initialise for the activation in use: `nn.init.kaiming_normal_(w, "
                    'nonlinearity="relu")`, `nn.init.xavier_uniform_` for tanh, standard '
                    "deviation 0.02 for transformer embeddings; biases at 0"
                ),
                expected_effect=(
                    "the loss at step 0 is near {chance}, and activations have a standard "
                    "deviation of order 1"
                ),
                verify="one forward pass before training: print `out.std()` per layer",
                if_it_fails=(
                    "if the scale is right and units are still equal, a parameter is created as a "
                    "constant; look for `zeros`, `ones` and `full`"
                ),
            ),
            Remedy(
                change=(
                    "Create parameters with values: `nn.Parameter(torch.randn(n, d) * d**-0.5)` "
                    "for `nn.Parameter(torch.empty(n, d))`"
                ),
                expected_effect="no garbage or constant tensors in the state dict",
                verify=(
                    "`traindx inspect` on a checkpoint of step 0 lists no constant weight matrix"
                ),
                if_it_fails=(
                    "if something overwrites them later, look for `apply(init_fn)` after loading "
                    "weights"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the checkpoint at step 0", "checkpoint"),
            Ask("print the standard deviation of each weight before training"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "dead-relu",
            "exploding-activations",
            "generator-mode-collapse",
            "representation-collapse",
            "saturated-activations",
            "unstable-operation",
            "vanishing-gradients",
        ),
        defaults={
            "chance": "log(number of classes)",
        },
        tailor=facts.classes,
    ),
    Cause(
        name="dead-relu",
        title="Many ReLU units never activate",
        what=(
            "A unit whose input is negative for every example outputs 0, receives a gradient of 0 "
            "and cannot come back. Large updates that push biases far down are the usual reason, "
            "followed by large negative initial biases and inputs that are not centred. A layer "
            "that is dead as a whole turns the output constant. Sparsity per example is normal; "
            "what counts is units that are 0 for every example."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change="Reduce {lr_cut} and start again: dead units do not recover",
                expected_effect=(
                    "the share of units that are 0 for every example stays under some per cent"
                ),
                verify="`(act > 0).any(dim=0).float().mean()` over ten batches, per layer",
                if_it_fails="if units are dead at step 0, suspect initialisation or input scale",
            ),
            Remedy(
                change=(
                    "Use an activation with a slope on both sides: `nn.LeakyReLU(0.01)` or "
                    "`nn.GELU()`"
                ),
                expected_effect="every unit has a non-zero gradient",
                verify="per-unit gradient norms after one backward pass",
                if_it_fails="if the outputs are still constant, the collapse has another origin",
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which records the share of units that stay "
                "at zero over several batches",
                "recording",
            ),
            Ask("print the share of zeros behind each ReLU for one batch"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "insufficient-capacity",
            "vanishing-gradients",
        ),
        defaults={
            "lr_cut": "the learning rate by half",
        },
        tailor=facts.learning_rate,
    ),
    Cause(
        name="saturated-activations",
        title="Activations sit at their flat ends",
        what=(
            "Inputs of tanh, sigmoid or softmax are so large that the output is ±1 or one-hot and "
            "the derivative is close to 0. The layer passes information on and learns nothing. "
            "Inputs that are not normalised, large weights, or attention logits without the factor "
            "1/sqrt(d) lead there. A confident softmax at the end of training is fine; one at step "
            "0 is not."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Bring the pre-activations to order 1: normalise the inputs, put a LayerNorm "
                    "before the activation, scale attention logits by `d**-0.5`"
                ),
                expected_effect=(
                    "the share of outputs beyond 0.99 falls below a tenth, and the gradient in "
                    "front of the layer rises"
                ),
                verify="`(act.abs() > 0.99).float().mean()` at step 0 and after an epoch",
                if_it_fails=(
                    "if saturation comes back over time, the learning rate or missing weight "
                    "decay lets the weights grow"
                ),
            ),
            Remedy(
                change="Replace sigmoid or tanh in hidden layers by ReLU or GELU",
                expected_effect="no flat end on the positive side",
                verify="per-layer gradient norms within two orders of magnitude",
                if_it_fails="if the saturated unit is a gate that must saturate, it is no fault",
            ),
        ),
        confirm_by=(
            Ask(
                "record the pre-activations of the layer; their standard deviation should be of "
                "order 1"
            ),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "generator-mode-collapse",
            "vanishing-gradients",
        ),
    ),
    Cause(
        name="softmax-before-cross-entropy",
        title="The loss receives probabilities where it expects logits",
        what=(
            "`nn.CrossEntropyLoss` applies log-softmax itself. Given a softmax output it "
            "normalises twice: the loss can never go below log(e + C − 1) − 1 (1.46 for ten "
            "classes), gradients are small, and learning is slow but not absent. Accuracy still "
            "rises, since the order of the classes is kept, so it passes for a learning rate that "
            "is too low or a weak model. With `BCEWithLogitsLoss` a sigmoid in front does the same."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Return raw logits from the model (remove the final `Softmax`, `LogSoftmax` or "
                    "`Sigmoid`) and apply softmax for prediction only"
                ),
                expected_effect=(
                    "the training loss goes below its old floor within the first epochs"
                ),
                verify=(
                    "`model(x).sum(-1)` is no longer 1; the loss at step 0 is near log(number of "
                    "classes)"
                ),
                if_it_fails="if the floor stays, labels or capacity limit it",
            ),
        ),
        confirm_by=(
            Ask("send the model's forward and the loss", "source"),
            Ask("check on one batch whether `out.sum(-1)` equals 1 everywhere"),
        ),
        brings_about=(
            "class-collapse",
            "insufficient-capacity",
            "lr-too-low",
            "saturated-activations",
            "vanishing-gradients",
        ),
    ),
    Cause(
        name="loss-expects-probabilities",
        title="The loss receives logits where it expects probabilities",
        what=(
            "`BCELoss` wants values in [0, 1] and `NLLLoss` wants log-probabilities. Raw logits "
            'make `BCELoss` raise ("all elements of input should be between 0 and 1", a '
            "device-side assert on CUDA), and make `NLLLoss` run away: its value is minus the "
            "logit, so the loss goes negative and falls without bound. A negative loss that keeps "
            "falling separates this from real progress."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Use the loss that takes logits: `nn.BCEWithLogitsLoss()` for `nn.BCELoss()`, "
                    "`nn.CrossEntropyLoss()` for `nn.NLLLoss()`"
                ),
                expected_effect=(
                    "the loss is never negative and starts near log(number of classes), or 0.69 "
                    "for two"
                ),
                verify="assert `loss >= 0` over the first epoch",
                if_it_fails="if it is still negative, another term of the loss is unbounded",
            ),
            Remedy(
                change="Or end the model in `nn.LogSoftmax(dim=-1)` and keep `NLLLoss`",
                expected_effect="`out.exp().sum(-1)` is 1 for every example",
                verify="check it on one batch",
                if_it_fails="if the sum is 1 along the wrong dimension, correct `dim`",
            ),
        ),
        confirm_by=(
            Ask("send the last layer of the model and the loss", "source"),
            Ask("print the range of the tensor that enters the loss"),
        ),
        brings_about=("exploding-activations", "unstable-operation"),
    ),
    Cause(
        name="wrong-loss-for-task",
        title="The loss does not fit the task",
        what=(
            "The objective is another one than the task needs: mean squared error on class "
            "indices, cross-entropy over a single output (which is always exactly 0), single-label "
            "loss on multi-label targets, or the reverse. Optimisation runs without a complaint "
            "and the loss even falls, while the metric stays at chance. A metric at chance with a "
            "falling loss is the sign; check the metric itself before blaming the loss."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Match loss, last layer and targets: single label → `nn.CrossEntropyLoss` with "
                    "{outputs} and int64 indices; multi-label or binary → `nn.BCEWithLogitsLoss` "
                    "with float targets of the output's shape; regression → `nn.MSELoss` or "
                    "`nn.SmoothL1Loss`"
                ),
                expected_effect=(
                    "the metric leaves chance in the first epoch, together with the loss"
                ),
                verify="overfit 20 examples: the metric reaches its best value",
                if_it_fails=(
                    "if it cannot overfit 20 examples, labels are wrong or the graph is cut"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the loss and the last layer", "source"),
            Ask("print the shape and dtype of one batch of targets"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "exploding-activations",
            "insufficient-capacity",
            "lr-too-high",
        ),
        defaults={
            "outputs": "one output per class",
        },
        tailor=facts.classes,
    ),
    Cause(
        name="target-shape-broadcast",
        title="Predictions and targets broadcast against each other",
        what=(
            "A prediction of shape (N, 1) and a target of shape (N) broadcast to (N, N), so every "
            "prediction is compared with every target. The optimum of that loss is the mean of the "
            "targets: the model learns a constant and the loss settles at the variance of the "
            'targets. PyTorch warns "Using a target size that is different to the input size" '
            "for MSELoss, and says nothing for hand-written losses."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Give both the same shape: `out.squeeze(-1)` or `y.unsqueeze(-1)`, whichever "
                    "keeps (N, 1) or (N) throughout"
                ),
                expected_effect=(
                    "the loss goes below the variance of the targets, and predictions begin to vary"
                ),
                verify="`assert out.shape == y.shape` in front of the loss",
                if_it_fails=(
                    "if shapes agree and predictions are constant, inputs carry no signal or the "
                    "targets need scaling"
                ),
            ),
        ),
        confirm_by=(Ask("print `out.shape` and `y.shape` just before the loss"),),
        brings_about=("constant-prediction", "insufficient-capacity"),
    ),
    Cause(
        name="insufficient-capacity",
        title="The model is too small or too constrained for the task",
        what=(
            "Optimisation is healthy (finite, steady gradients, a rate that neither stalls nor "
            "diverges), yet training and validation loss level off together at a poor value. "
            "Before a larger model is tried, everything else that keeps the training loss up has "
            "to be ruled out: frozen or unused layers, strong regularisation, noisy labels, a "
            "double softmax. The decisive test is whether it can overfit a few examples."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Remove what constrains it before adding layers: dropout, weight decay, "
                    "augmentation, label smoothing"
                ),
                expected_effect="the training loss goes below the old plateau within a few epochs",
                verify="rerun with these at 0",
                if_it_fails="if the plateau stays, widen the model",
            ),
            Remedy(
                change="Double the width (or the depth, with residual connections)",
                expected_effect="the training loss levels off clearly lower",
                verify="compare training losses at equal numbers of examples",
                if_it_fails=(
                    "if nothing changes, the inputs do not determine the targets (label noise, "
                    "missing features)"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "train on 50 examples without regularisation until the loss stops falling, and "
                "report that value"
            ),
        ),
    ),
    Cause(
        name="data-distribution-change",
        title="The training data change during the run",
        what=(
            "At one step the loss jumps to a new level and goes on from there: a curriculum stage "
            "begins, another shard or source is read, augmentation is switched on, or sequence "
            "length grows. The jump falls on a boundary (an epoch, a shard, a stage) and the "
            "gradient norm rises with it but stays finite. Divergence keeps climbing; here the "
            "loss descends again."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Mix across the boundary: draw from both stages with a ratio that moves over "
                    "some thousand steps"
                ),
                expected_effect=(
                    "a ramp in place of the step, and no loss of the earlier stage's metric"
                ),
                verify="log the loss per source",
                if_it_fails="if the step remains within one source, it is not the mixture",
            ),
            Remedy(
                change="Reduce {lr_cut}, with a short warm-up at the boundary",
                expected_effect="grad_norm at the boundary stays within twice its median",
                verify="rerun from the checkpoint before the boundary",
                if_it_fails=(
                    "if the new data are faulty, inspect the first batches after the boundary"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "say what changes in the data at that step, or log the data source with each batch"
            ),
        ),
        brings_about=("catastrophic-forgetting",),
        defaults={
            "lr_cut": "the learning rate by half at the boundary",
        },
        tailor=facts.learning_rate,
    ),
    Cause(
        name="outlier-batch",
        title="One batch explains the spike",
        what=(
            "A single batch holds records unlike the rest (corrupt, mislabelled, extreme in value "
            "or length), and its loss and gradient stand alone. The steps before are ordinary and, "
            "if no harm was done to the weights, so are the steps after. The spike returns with "
            "the batch, at the same position of the data order in each epoch, whatever the "
            "learning rate."
        ),
        severity=Severity.MEDIUM,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Look at the records of that batch and repair or remove them at their source; "
                    "log indices with the loss so that they can be named"
                ),
                expected_effect="no spike at that position in the next epoch",
                verify=(
                    "compute the loss per example over the data with a healthy checkpoint: the "
                    "tail has no isolated values"
                ),
                if_it_fails=(
                    "if the batch looks ordinary, replay it from the checkpoint before; no spike "
                    "there means that the weights, not the data, were at fault"
                ),
            ),
            Remedy(
                change=(
                    "Use a loss that grows linearly for large errors, `nn.SmoothL1Loss` or "
                    "`nn.HuberLoss`, if extreme targets are genuine"
                ),
                expected_effect="the batch's gradient norm is within ten times the median",
                verify="log the largest per-example loss",
                if_it_fails="if the inputs are extreme, not the targets, normalise or filter them",
            ),
        ),
        confirm_by=(
            Ask(
                "run `traindx run -- <your command>`, which keeps the batch of the spike",
                "recording",
            ),
            Ask("log the example indices"),
        ),
        brings_about=(
            "exploding-activations",
            "loss-scale-collapse",
            "missing-gradient-clipping",
            "unstable-operation",
        ),
    ),
    Cause(
        name="competing-losses",
        title="One term of the loss is given up for another",
        what=(
            "The total falls while one of its terms rises or stands still: its weight is too small "
            "against the gradients of the others, or the terms contradict each other. The total "
            "alone hides it. A term that rises together with the total is plain divergence."
        ),
        severity=Severity.MEDIUM,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Weight the terms so that their gradients on the shared parameters are of one "
                    "size: set each weight to the inverse of its term's gradient norm at the "
                    "start, then adjust"
                ),
                expected_effect=(
                    "all terms fall over the first epochs; the neglected one by at least a tenth"
                ),
                verify="plot every term, not the total",
                if_it_fails=(
                    "if one rises under any weight, the terms conflict, so look at the angle "
                    "between their gradients"
                ),
            ),
            Remedy(
                change=(
                    "Ramp the dominant term in: weight from 0 to its value over the first epochs"
                ),
                expected_effect="the neglected term is learnt before the other takes over",
                verify="its value at the end of the ramp is below that of the run without a ramp",
                if_it_fails=(
                    "separate the parameters that they share (own heads, own optimizer steps)"
                ),
            ),
        ),
        confirm_by=(
            Ask("log every term of the loss", "loss/train/*"),
            Ask("log the gradient norm of each term on the shared parameters"),
        ),
        brings_about=("class-collapse", "constant-prediction"),
    ),
)
