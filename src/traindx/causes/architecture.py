"""Causes in how the model is built."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import MODULES, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="embedding-dominated-model",
        title="The embeddings hold {embedding_share} of the parameters",
        what=(
            "Most parameters sit in lookup tables, and the layers that should model structure are "
            "too small. The loss falls at first, for token frequencies are easily learnt, and then "
            "stops; a language model ends in frequent tokens or repetition. In the case this rule "
            "grew from 79 % were embeddings and the model answered everything with colons. Large "
            "vocabularies on small budgets are the reason, an untied output matrix doubles it. Big "
            "sparse recommenders are built that way on purpose."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Tie input and output embeddings (`lm_head.weight = embedding.weight`) and cut "
                    "the vocabulary to what the data support (8k to 16k for a small corpus)"
                ),
                expected_effect=(
                    "the share of the embeddings falls to about half or less, at equal total size"
                ),
                verify=(
                    "count parameters: `sum(p.numel() for p in model.embedding.parameters()) / "
                    "total`"
                ),
                if_it_fails=(
                    "if the share is right and output is still repetitive, look at targets and "
                    "decoding"
                ),
            ),
            Remedy(
                change=(
                    "Move parameters from the tables into depth: a smaller embedding with a "
                    "projection (`nn.Embedding(V, 128)` and `nn.Linear(128, d)`), more layers"
                ),
                expected_effect=(
                    "the loss goes below the unigram entropy of the corpus and keeps falling"
                ),
                verify="compare validation loss at equal parameter count",
                if_it_fails="if there is no gain, the data are too few for the depth",
            ),
        ),
        confirm_by=(
            Ask(
                "send a checkpoint or the model code, so that parameters can be counted by block "
                "(`traindx inspect checkpoint.pt`)",
                "architecture",
            ),
        ),
        brings_about=("insufficient-capacity", "parameter-imbalance", "repetition-collapse"),
        defaults={
            "embedding_share": "most",
        },
        tailor=facts.embedding_share,
    ),
    Cause(
        name="parameter-imbalance",
        title="One block holds nearly all parameters{largest_block}",
        what=(
            "The parameters are spread so unevenly that one block dominates memory and "
            "regularisation while another can learn little: typically a first fully connected "
            "layer behind a large flatten, or one wide branch beside thin ones. It is a hint about "
            "design, not a fault by itself; many sound networks (VGG) look so."
        ),
        severity=Severity.LOW,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Shrink what feeds the dominant layer: `nn.AdaptiveAvgPool2d(1)` before the "
                    "flatten, or a bottleneck"
                ),
                expected_effect=(
                    "the block's share falls below half without a loss in validation metric"
                ),
                verify="count parameters per child module",
                if_it_fails=(
                    "if validation suffers, spatial detail matters, so pool to 4×4 rather than to "
                    "1×1"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "send the model code or a checkpoint, so that parameters can be counted by block",
                "architecture",
            ),
        ),
        brings_about=("insufficient-capacity",),
        defaults={
            "largest_block": "",
        },
        tailor=facts.largest_block,
    ),
    Cause(
        name="unregistered-submodules",
        title="Layers or parameters are not registered with their module",
        what=(
            "Layers kept in a plain list, tuple or dict, or created inside `forward`, are not seen "
            "by `nn.Module`: they are missing from `parameters()`, do not move with `.to(device)`, "
            "are not saved, and do not train. The parameter count is lower than expected and no "
            "error is raised on the CPU; on a GPU a device mismatch shows it."
        ),
        severity=Severity.CRITICAL,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Hold them in `nn.ModuleList`, `nn.ModuleDict` or `nn.ParameterList`, created "
                    "in `__init__`"
                ),
                expected_effect=(
                    "the parameter count rises by the missing layers, and the loss falls below its "
                    "old level"
                ),
                verify="the names of the layers appear in `dict(model.named_parameters())`",
                if_it_fails="if they appear and do not move, the optimizer was built before",
            ),
            Remedy(
                change=(
                    'Register constant tensors with `self.register_buffer("name", tensor)` and '
                    "weights as `nn.Parameter`"
                ),
                expected_effect="they move with `.to()` and are saved",
                verify="`model.state_dict().keys()`",
                if_it_fails=(
                    "if a later assignment replaces the parameter by a plain tensor, assign with "
                    "`copy_` under `no_grad`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the model code", "source"),
            Ask("compare `sum(p.numel() for p in model.parameters())` with what you expect"),
        ),
        brings_about=(
            "class-collapse",
            "constant-prediction",
            "device-mismatch",
            "insufficient-capacity",
            "parameters-not-in-optimizer",
            "rank-desync",
            "state-dict-key-mismatch",
        ),
    ),
    Cause(
        name="missing-super-init",
        title="The module does not call super().__init__() before it assigns layers",
        what=(
            "`nn.Module` keeps its registries in attributes that `super().__init__()` creates. "
            'Without the call, the first assignment of a layer raises "cannot assign module '
            'before Module.__init__() call"; a missing call in a class without layers of its own '
            "fails later, at `.parameters()` or at a hook."
        ),
        severity=Severity.CRITICAL,
        specialist=MODULES,
        remedies=(
            Remedy(
                change="Make `super().__init__()` the first statement of `__init__`",
                expected_effect="the model can be constructed",
                verify="`sum(p.numel() for p in Model().parameters())` is as expected",
                if_it_fails=(
                    "if the error names another class, a parent or a mixin misses the call; check "
                    "the order of bases"
                ),
            ),
            Remedy(
                change=(
                    "In a dataclass call it from `__post_init__` only if no field holds a module; "
                    "otherwise write `__init__` by hand"
                ),
                expected_effect="fields that are modules are registered",
                verify="`list(model.children())`",
                if_it_fails=(
                    "use `@dataclass(eq=False)`, for `eq=True` removes the hash that modules need"
                ),
            ),
        ),
        confirm_by=(Ask("send the class that the traceback names", "source"),),
        brings_about=("api-misuse", "unregistered-submodules"),
    ),
    Cause(
        name="missing-nonlinearity",
        title="Linear layers follow each other without a nonlinearity",
        what=(
            "Two linear maps in a row are one linear map, so depth adds nothing: the model fits "
            "what a single layer fits and levels off there. Factorised layers, LoRA, projections "
            "before a norm and logit heads do it on purpose."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Put an activation between them: `nn.Sequential(nn.Linear(a, b), nn.GELU(), "
                    "nn.Linear(b, c))`"
                ),
                expected_effect=(
                    "the training loss goes below that of a linear model in the first epochs"
                ),
                verify="compare with a single linear layer at equal data: clearly better",
                if_it_fails=(
                    "if it is no better, the task is linear, or the gradient does not reach the "
                    "first layer"
                ),
            ),
        ),
        confirm_by=(Ask("send the model's forward", "source"),),
        brings_about=("insufficient-capacity",),
    ),
    Cause(
        name="too-deep-without-skip",
        title="The network is deep and has neither residual connections nor normalisation",
        what=(
            "Beyond some ten to twenty layers the product of Jacobians shrinks or grows "
            "exponentially, so the early layers get no usable gradient and training loss is worse "
            "than that of a shallower net. That the *training* loss is worse separates it from "
            "overfitting."
        ),
        severity=Severity.MEDIUM,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Add a skip around each pair of layers: `x = x + block(norm(x))`, with a 1×1 "
                    "projection where the width changes"
                ),
                expected_effect=(
                    "gradient norms of first and last block within a factor of ten, and the "
                    "training loss below that of the shallow net"
                ),
                verify="per-layer gradient norms at step 0",
                if_it_fails=(
                    "if the norms are even and training is poor, the depth was not the problem"
                ),
            ),
            Remedy(
                change="Halve the depth",
                expected_effect="the training loss falls faster in the first epoch",
                verify="compare after equal numbers of steps",
                if_it_fails="if there is no difference, look at learning rate and loss",
            ),
        ),
        confirm_by=(
            Ask("run `traindx run -- <your command>` for per-layer gradient norms", "recording"),
            Ask("train a version with half the depth"),
        ),
        brings_about=("exploding-activations", "saturated-activations", "vanishing-gradients"),
    ),
    Cause(
        name="unused-parameters",
        title="Parameters exist that no output depends on",
        what=(
            "A layer is defined and never called, or its result is thrown away. Its gradient stays "
            "None, so it costs memory and misleads the parameter count, and it breaks distributed "
            "training, which waits for that gradient. Often it is the trace of a bug: the forward "
            "pass calls another layer twice instead."
        ),
        severity=Severity.LOW,
        specialist=MODULES,
        remedies=(
            Remedy(
                change="Call the layer in `forward` where it was meant, or delete it",
                expected_effect="no trainable parameter has a gradient of None",
                verify="the list above is empty",
                if_it_fails=(
                    "if the list changes from batch to batch, control flow, such as a branch or "
                    "layer drop, skips them"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "print `[n for n, p in model.named_parameters() if p.grad is None]` after one "
                "backward pass"
            ),
        ),
        brings_about=("ddp-unused-parameters",),
    ),
    Cause(
        name="shape-mismatch",
        title="Tensor shapes do not fit{shape_fact}",
        what=(
            "Two sizes that must be equal are not: the input size of a linear layer against the "
            "flattened features, the inner dimensions of a product, the other dimensions of a "
            "concatenation, the number of elements of a view. The message holds both sizes; the "
            "wrong one is usually the one written as a number in the code. For a convolution, out "
            "= (in + 2·padding − dilation·(kernel − 1) − 1) / stride + 1: a 3×3 kernel on 32×32 "
            "gives 30×30, so 64 channels flatten to 57600 features."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change="Change {shape_fix}",
                expected_effect="the forward pass runs for the batch that failed",
                verify=(
                    "`model(torch.randn(2, *input_shape)).shape` is as intended, before training"
                ),
                if_it_fails=(
                    "if the next layer complains, follow the shapes from there; print them with a "
                    "forward hook per module"
                ),
            ),
            Remedy(
                change=(
                    "Make the size independent of the input: `nn.AdaptiveAvgPool2d(1)` before the "
                    "flatten, or `nn.LazyLinear(out)`"
                ),
                expected_effect="inputs of other sizes work as well",
                verify="run two input sizes",
                if_it_fails=(
                    "if the mismatch is in the batch dimension, a reshape mixes batch and "
                    "features; use `flatten(1)`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the full traceback", "failure"),
            Ask("send the model code", "source"),
            Ask("run `traindx run -- <your command>` for the shape at every layer", "recording"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "shape_fact": "",
            "shape_fix": "the layer's declared size to the size it receives",
        },
        tailor=facts.matmul_shapes,
    ),
    Cause(
        name="channel-mismatch",
        title="The number or order of channels does not fit the layer{channel_fact}",
        what=(
            "A convolution or normalisation gets another number of channels than it was built for: "
            "grey images into an RGB stem, RGBA files, a layer that changed without its neighbour, "
            'or NHWC arrays where PyTorch wants NCHW (the "channels" are then the image height). '
            "The two numbers in the message tell which."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change="{channel_fix}",
                expected_effect="the forward pass runs",
                verify="print `x.shape` in front of the layer: (N, C, H, W) with the expected C",
                if_it_fails="if C equals the image height, the layout is wrong, not the count",
            ),
            Remedy(
                change=(
                    "Convert the layout where arrays become tensors: `x.permute(0, 3, 1, "
                    '2).contiguous()`, or `ToTensor`; open images with `.convert("RGB")`'
                ),
                expected_effect="every batch is NCHW with 3 channels",
                verify="the set of shapes over one epoch has one member",
                if_it_fails="if some files differ, list those whose mode is not RGB",
            ),
        ),
        confirm_by=(
            Ask("send the full traceback", "failure"),
            Ask("print the shape of one input batch"),
        ),
        brings_about=("rank-failed-first", "shape-mismatch"),
        defaults={
            "channel_fact": "",
            "channel_fix": (
                "Set `in_channels` of the layer to what it receives, or convert the input"
            ),
        },
        tailor=facts.channels,
    ),
    Cause(
        name="output-size-mismatch",
        title="The output size does not match the number of classes or targets{classes_fact}",
        what=(
            "The last layer has other units than there are classes: too few, and labels are out of "
            "range (a device-side assert on CUDA); too many, and training works with classes that "
            "never occur, starting at a loss of log(units). A pretrained head left at 1000 classes "
            "is typical."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Set the last layer to {outputs}: `model.fc = nn.Linear(model.fc.in_features, "
                    "num_classes)`, before the optimizer is built"
                ),
                expected_effect="the loss at step 0 is log(number of classes)",
                verify=(
                    "`assert model(x).shape[1] == int(labels.max()) + 1` over the training labels"
                ),
                if_it_fails=(
                    "if the largest label is larger than expected, labels start at 1, or an "
                    "ignore value is among them"
                ),
            ),
        ),
        confirm_by=(Ask("print `model(x).shape` and `y.unique()` for one batch"),),
        brings_about=("label-out-of-range", "rank-failed-first", "shape-mismatch"),
        defaults={
            "classes_fact": "",
            "outputs": "the number of classes",
        },
        tailor=facts.classes,
    ),
    Cause(
        name="vocabulary-mismatch",
        title="The tokenizer and the embedding table have different sizes{vocabulary_fact}",
        what=(
            "The tokenizer yields ids beyond the last embedding row (tokens were added, another "
            "tokenizer was loaded, `vocab_size` instead of `len(tokenizer)` was used), and a batch "
            'with such a token fails with "index out of range", on CUDA with a device-side '
            "assert. It is intermittent, because only some texts hold the new tokens. More rows "
            "than tokens is harmless padding."
        ),
        severity=Severity.HIGH,
        specialist=MODULES,
        remedies=(
            Remedy(
                change=(
                    "Size the table by the tokenizer: `nn.Embedding(len(tokenizer), d)`, or "
                    "`model.resize_token_embeddings(len(tokenizer))`, with the output layer alike"
                ),
                expected_effect="every batch of an epoch passes",
                verify="`assert int(ids.max()) < embedding.num_embeddings` in the collate function",
                if_it_fails=(
                    "if ids are still too large, the data were tokenised earlier with another "
                    "tokenizer, so tokenise again"
                ),
            ),
            Remedy(
                change="Load tokenizer and model from one checkpoint, and save both together",
                expected_effect="ids mean the same in training and inference",
                verify="encode and decode a sentence with the saved pair",
                if_it_fails=(
                    "if text comes back wrong, the vocabulary order differs; retrain or convert "
                    "the table"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "print `len(tokenizer)`, `embedding.num_embeddings` and the largest id in the data"
            ),
        ),
        brings_about=("index-out-of-range", "label-out-of-range", "state-dict-shape-mismatch"),
        defaults={
            "vocabulary_fact": "",
        },
        tailor=facts.vocabulary,
    ),
)
