"""One name for one operation, whether it is written as a function, a method, a layer or a sign."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from traindx.analysis.program.execution.values import NOT_ASKED, Result, Value

# distributions that take probabilities or logits, by the names that they go by
CHOICES = {
    f"torch.distributions.{home}{kind}": kind
    for home in ("", "categorical.", "bernoulli.", "one_hot_categorical.")
    for kind in ("Categorical", "Bernoulli", "OneHotCategorical")
}
HOMES = (
    "torch.nn.functional.", "torch.special.", "torch.Tensor.", "torch.linalg.", "torch.sparse.",
    "torch.",
)  # fmt: skip
# layers whose function has another name than theirs in small letters
LAYERS = {
    "CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "MSELoss": "mse_loss",
    "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss",
    "BCELoss": "binary_cross_entropy", "KLDivLoss": "kl_div", "CTCLoss": "ctc_loss",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "GaussianNLLLoss": "gaussian_nll_loss",
    "PoissonNLLLoss": "poisson_nll_loss", "TripletMarginLoss": "triplet_margin_loss",
    "MarginRankingLoss": "margin_ranking_loss", "CosineEmbeddingLoss": "cosine_embedding_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss", "MultiMarginLoss": "multi_margin_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "ReLU": "relu", "GELU": "gelu",
    "MultiLabelMarginLoss": "multilabel_margin_loss", "SoftMarginLoss": "soft_margin_loss",
    "LogSoftmax": "log_softmax", "Softmax": "softmax", "Softmax2d": "softmax", "ELU": "elu",
    "SiLU": "silu", "LeakyReLU": "leaky_relu", "PReLU": "prelu", "Hardtanh": "hardtanh",
    "BatchNorm1d": "batch_norm", "BatchNorm2d": "batch_norm", "BatchNorm3d": "batch_norm",
    "LayerNorm": "layer_norm", "GroupNorm": "group_norm", "Dropout": "dropout",
    "Dropout1d": "dropout1d", "Dropout2d": "dropout2d", "Conv1d": "conv1d", "Conv2d": "conv2d",
    "Conv3d": "conv3d", "LSTM": "lstm", "GRU": "gru", "RNN": "rnn", "SELU": "selu",
    "ReLU6": "relu6", "CELU": "celu", "GLU": "glu", "LogSigmoid": "logsigmoid",
}  # fmt: skip
SAME = {
    "sub": "sub", "subtract": "sub", "rsub": "sub", "true_divide": "div", "divide": "div",
    "multiply": "mul", "negative": "neg", "mm": "matmul", "bmm": "matmul", "absolute": "abs",
    "power": "pow", "square": "square", "expit": "sigmoid", "__call__": "()", "fabs": "abs",
    "swapaxes": "transpose", "swapdims": "transpose", "movedim": "permute", "clip": "clamp",
    "concat": "cat", "concatenate": "cat", "greater": "gt", "less": "lt", "equal": "eq",
    "greater_equal": "ge", "less_equal": "le", "not_equal": "ne",
}  # fmt: skip
LOSSES = frozenset(v for k, v in LAYERS.items() if k.endswith("Loss"))
# what the positional arguments of losses and their layers are called
OPERANDS = {
    "softmax": ("input", "dim"), "log_softmax": ("input", "dim"),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                     "feature_alpha_dropout"), ("input", "p", "training")),
    "scaled_dot_product_attention": ("query", "key", "value", "attn_mask", "dropout_p"),
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training"),
    **dict.fromkeys(LOSSES, ("input", "target")),
    **dict.fromkeys(CHOICES.values(), ("probs", "logits")),
    "ctc_loss": ("log_probs", "targets"),
    "cross_entropy": ("input", "target", "weight", "size_average", "ignore_index", "reduce",
                      "reduction", "label_smoothing"),
    "nll_loss": ("input", "target", "weight", "size_average", "ignore_index", "reduce",
                 "reduction"),
}  # fmt: skip
SETTINGS = {
    "cross_entropy": ("weight", "size_average", "ignore_index", "reduce", "reduction",
                      "label_smoothing"),
    "nll_loss": ("weight", "size_average", "ignore_index", "reduce", "reduction"),
    "binary_cross_entropy_with_logits": ("weight", "size_average", "reduce", "reduction",
                                         "pos_weight"),
    "binary_cross_entropy": ("weight", "size_average", "reduce", "reduction"),
    "mse_loss": ("size_average", "reduce", "reduction"),
    "l1_loss": ("size_average", "reduce", "reduction"),
    "softmax": ("dim",), "log_softmax": ("dim",), "dropout": ("p", "inplace"),
    "linear": ("in_features", "out_features", "bias"),
    "embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Operation:
    """An operation on tensors: its name, what it is done to, and its settings by name."""

    name: str
    operands: tuple[Value, ...]
    settings: Mapping[str, Value]

    def argument(self, name: str) -> Value | None:
        """Return an argument by the name that torch gives it."""
        if name in self.settings:
            return self.settings[name]
        known = OPERANDS.get(self.name, ("input",))
        position = known.index(name) if name in known else None
        if position is None or position >= len(self.operands):
            return None
        return self.operands[position]


def operation_of(value: Value | None) -> Operation | None:
    """Return the operation that made a value; None where none did."""
    if not isinstance(value, Result):
        return None
    if value.operation is NOT_ASKED:
        value.operation = _operation(value)
    found: Operation | None = value.operation
    return found


def _operation(value: Result) -> Operation | None:
    layer = _called_layer(value) if value.maker == "()" else None
    if layer is not None:
        return _of_layer(value, layer)
    name = operation_name(value.maker)
    given = value.args if value.receiver is None else (value.receiver, *value.args)
    return Operation(name, _operands(name, given, value.kwargs), value.kwargs)


def _of_layer(value: Result, layer: Result) -> Operation | None:
    """Return what the call of a layer does."""
    name = _layer_operation(layer.maker)
    if name is None:
        return None
    made = dict(zip(SETTINGS.get(name, ()), layer.args, strict=False))
    settings = {**made, **layer.kwargs, **value.kwargs}
    return Operation(name, _operands(name, value.args, value.kwargs), settings)


def name_of_operation(value: Value | None) -> str | None:
    """Return the name of the operation that made a value; None where none did."""
    if not isinstance(value, Result):
        return None
    layer = _called_layer(value)
    return operation_name(value.maker) if layer is None else _layer_operation(layer.maker)


def _called_layer(value: Result) -> Result | None:
    """Return the layer whose call made a value, where a constructor in sight made the layer."""
    layer = value.receiver if value.maker == "()" else None
    return layer if isinstance(layer, Result) and layer.receiver is None else None


def _operands(
    name: str, given: tuple[Value, ...], named: Mapping[str, Value]
) -> tuple[Value, ...]:  # fmt: skip
    """Return what an operation is done to, be it given by position or as `input` and `target`."""
    if not named:
        return given
    found = list(given)
    for parameter in OPERANDS.get(name, ("input",))[len(given) :]:
        if parameter not in ("input", "target") or parameter not in named:
            break
        found.append(named[parameter])
    return tuple(found)


@lru_cache(maxsize=8192)
def operation_name(maker: str) -> str:
    """Return the operation that a function, method or operator does."""
    for home in ("operator.i", "operator."):
        if maker.startswith(home) and maker not in ("operator.is", "operator.in", "operator.invert",
                                                    "operator.is_not"):  # fmt: skip
            return maker.removeprefix(home)
    name = CHOICES.get(maker, maker)
    for home in HOMES:
        if maker.startswith(home) and "." not in maker[len(home) :]:
            name = maker[len(home) :]
            break
    if name.startswith("."):
        name = name[1:]
    plain = name.rstrip("_") or name
    return SAME.get(plain, plain)


@lru_cache(maxsize=1024)
def _layer_operation(maker: str) -> str | None:
    """Return the operation of a layer of torch."""
    if not maker.startswith("torch.nn.") or "functional" in maker:
        return None
    kind = maker.rsplit(".", 1)[-1]
    if kind in LAYERS:
        return LAYERS[kind]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()


def is_in_place(maker: str) -> bool:
    """Tell whether an operation changes its first operand: `add_`, `+=`."""
    if maker.startswith("operator.i"):
        return maker not in ("operator.is", "operator.in", "operator.invert", "operator.is_not")
    last = maker.rsplit(".", 1)[-1]
    return last.endswith("_") and not last.endswith("__")
