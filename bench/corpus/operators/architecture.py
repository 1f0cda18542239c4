"""Layers that do not fit together, or are not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import forwards, layers, method, modules
from bench.corpus.operators import Change, Ends, crash, one, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, last, named


@crash("shape-mismatch")
def linear_input_width_wrong(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Linear"):
        if len(call.args) >= 2:
            width = call.args[0]
            if isinstance(width, ast.BinOp):
                yield one(source.wrap(width, "2 * ", ""))
            elif isinstance(width, ast.Constant):
                yield one(source.replace(width, str(int(width.value) * 2)))  # type: ignore[arg-type]
            else:
                yield one(source.wrap(width, "", " + 1"))


@crash("shape-mismatch")
def recurrent_width_wrong(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "LSTM", "GRU", "RNN"):
        if call.args:
            yield one(source.wrap(call.args[0], "", " + 2"))


@crash("shape-mismatch")
def concatenation_along_wrong_axis(source: Source, strength: float) -> Iterator[Change]:
    for forward in forwards(source):
        for node in ast.walk(forward):
            if isinstance(node, ast.Call) and last(node) == "cat":
                axis = keyword(node, "dim") or (node.args[1] if len(node.args) > 1 else None)
                if isinstance(axis, ast.Constant) and axis.value in (1, 2):
                    yield one(source.replace(axis, "0"))


@crash("shape-mismatch")
def flatten_forgotten(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Flatten"):
        parent = source.parents[call]
        if isinstance(parent, ast.Call) and last(parent) == "Sequential":
            yield one(source.replace(call, "nn.Identity()"))
    for forward in forwards(source):
        for node in ast.walk(forward):
            is_flat = isinstance(node, ast.Call) and last(node) == "flatten" and node.args
            if is_flat and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_torch = dotted(node.func.value) == "torch"
                kept = node.args[0] if is_torch else node.func.value
                yield one(source.replace(node, source.code(kept)))


@crash("channel-mismatch", accepted=("shape-mismatch",))
def input_channels_wrong(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Conv1d", "Conv2d", "ConvTranspose2d"):
        if isinstance(call.args[0] if call.args else None, ast.Constant):
            yield one(source.replace(call.args[0], "3"))
        elif call.args:
            yield one(source.wrap(call.args[0], "2 * ", ""))


@crash("channel-mismatch", accepted=("shape-mismatch",))
def norm_channels_wrong(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "BatchNorm1d", "BatchNorm2d", "GroupNorm"):
        if call.args:
            yield one(source.wrap(call.args[-1], "", " * 2"))


@crash("channel-mismatch", accepted=("shape-mismatch",))
def channels_put_last(source: Source, strength: float) -> Iterator[Change]:
    if not any(c for c in named(source, "Conv2d", "ShapeNet")) and "images" not in source.text:
        return
    for call in named(source, "unsqueeze"):
        if call.args and source.code(call.args[0]) in ("1", "0"):
            yield one(source.replace(call.args[0], "-1"))


@crash("output-size-mismatch", accepted=("label-out-of-range",))
def one_class_too_few(source: Source, strength: float) -> Iterator[Change]:
    """The label that is out of range is so because the model has too few outputs."""
    found = [c for c in layers(source, "Linear") if len(c.args) >= 2]
    words = ("classes", "labels", "n_out", "num_")
    for call in found:
        told = source.code(call.args[1]).lower()
        if any(w in told for w in words) or (call is found[-1] and told in ("2", "3", "5", "10")):
            yield one(source.wrap(call.args[1], "", " - 1"))


@operator(
    "output-size-mismatch", accepted=("target-shape-broadcast", "shape-mismatch"), ends=Ends.EITHER
)
def two_outputs_for_one_target(source: Source, strength: float) -> Iterator[Change]:
    """The loss broadcasts or refuses: the outputs are one too many."""
    for call in layers(source, "Linear"):
        if len(call.args) >= 2 and source.code(call.args[1]) == "1":
            yield one(source.replace(call.args[1], "2"))


@crash("vocabulary-mismatch", accepted=("index-out-of-range",))
def embedding_rows_missing(source: Source, strength: float) -> Iterator[Change]:
    """The index is out of range because the table is smaller than the vocabulary."""
    for call in layers(source, "Embedding"):
        told = source.code(call.args[0]).lower() if call.args else ""
        if "vocab" in told or "token" in told:
            yield one(source.wrap(call.args[0], "", " - 2"))
    for call in named(source, "BertConfig", "GPT2Config", "DistilBertConfig"):
        size = keyword(call, "vocab_size")
        if size is not None:
            yield one(source.wrap(size, "", " // 2"))


@crash("missing-super-init")
def super_init_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for klass in modules(source):
        init = method(klass, "__init__")
        for statement in init.body if init else []:
            if source.code(statement).startswith("super()") and init is not None:
                rest = [s for s in init.body if s is not statement]
                if rest:
                    yield Change((source.drop(statement),), rest[0])


@operator("unused-parameters")
def layer_never_called(source: Source, strength: float) -> Iterator[Change]:
    """A layer that is made and then left out of forward."""
    for klass in modules(source):
        forward = method(klass, "forward")
        for node in ast.walk(forward) if forward else []:
            if isinstance(node, ast.Call) and dotted(node.func).startswith("self.mid"):
                yield one(source.replace(node, source.code(node.args[0])))
    for klass in modules(source):
        init = method(klass, "__init__")
        made = [s for s in init.body if isinstance(s, ast.Assign)] if init else []
        if made and "nn.Linear" in source.text:
            yield one(source.after(made[-1], "self.extra = nn.Linear(64, 64)"))


@operator("embedding-dominated-model", strengths=(20000,))
def vocabulary_far_too_large(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Embedding"):
        told = source.code(call.args[0]).lower() if call.args else ""
        if ("vocab" in told or "token" in told) and ".weight = " not in source.text:
            yield one(source.replace(call.args[0], f"{strength:g}"))


@crash("api-misuse")
def parameters_not_called(source: Source, strength: float) -> Iterator[Change]:
    """The optimizer is given the model, not its parameters."""
    for call in named(source, "parameters"):
        parent = source.parents[call]
        is_first = isinstance(parent, ast.Call) and parent.args[:1] == [call]
        if is_first and "optim" in source.code(parent) and isinstance(call.func, ast.Attribute):
            yield one(source.replace(call, source.code(call.func.value)))


@crash("api-misuse")
def loss_class_called_with_tensors(source: Source, strength: float) -> Iterator[Change]:
    """`nn.CrossEntropyLoss(out, y)`: the arguments go to the constructor."""
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = node.value
            if last(made).endswith("Loss") and not made.args and not made.keywords:
                yield one(source.replace(made, dotted(made.func)))


@crash("api-misuse")
def keyword_that_does_not_exist(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "SGD", "AdamW", "Adam"):
        rate = keyword(call, "lr")
        if rate is not None:
            at = next(k for k in call.keywords if k.value is rate)
            yield one(source.replace(at, f"learning_rate={source.code(rate)}"))
