"""Validation that does not tell the truth, and data that does not carry over."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    MODE_DEPENDENT,
    evaluations,
    loop_steps,
    mode_calls,
    other_loaders,
    steps,
    tensor_sets,
    training_loaders,
)
from bench.corpus.operators import Change, Ends, Judged, many, one, operator
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.source import Source
from bench.corpus.syntax import argument, dotted, keyword, last, named, names_in, number


def is_mode_dependent(source: Source) -> bool:
    words = (*MODE_DEPENDENT, "import")
    return any(w in source.text for w in words[:-1]) or "from model" in source.text


@operator("training-in-eval-mode")
def train_mode_taken_away(source: Source, strength: float) -> Iterator[Change]:
    """After the first evaluation the model stays as evaluation left it."""
    found = mode_calls(source, "train")
    if found and mode_calls(source, "eval") and is_mode_dependent(source):
        near = [s.backward for s in loop_steps(source)]
        if near:
            changed = [
                source.replace(f, source.code(f).replace(".train()", ".eval()")) for f in found
            ]
            yield many(*changed)


@operator("validation-in-train-mode", judged=Judged.BY_LOG)
def eval_mode_taken_away(source: Source, strength: float) -> Iterator[Change]:
    found = mode_calls(source, "eval")
    if found and is_mode_dependent(source):
        calls = evaluations(source)
        if calls:
            yield Change(tuple(source.drop(f) for f in found), calls[0])


@operator("evaluating-on-training-data", accepted=("data-leakage",), judged=Judged.BY_LOG)
def validation_reads_training_set(source: Source, strength: float) -> Iterator[Change]:
    """The validation loader is made from the training set."""
    train = [argument(c, 0, "dataset") for c in training_loaders(source)]
    for call in other_loaders(source):
        given = argument(call, 0, "dataset")
        mine = train[0] if train else None
        if given is None or mine is None:
            continue
        if source.scope(call) is source.scope(mine) or dotted(mine).startswith("self."):
            yield one(source.replace(given, source.code(mine)))
    for call in named(source, "Trainer"):
        good, bad = keyword(call, "train_dataset"), keyword(call, "eval_dataset")
        if good is not None and bad is not None:
            yield one(source.replace(bad, source.code(good)))


@operator("evaluating-on-training-data", accepted=("data-leakage",), judged=Judged.BY_LOG)
def evaluation_given_training_loader(source: Source, strength: float) -> Iterator[Change]:
    for call in source.calls():
        is_eval = any(w in last(call).lower() for w in ("evaluate", "validate", "score", "test_"))
        for given in call.args:
            name = dotted(given)
            train = name.replace("val", "train").replace("test", "train").replace("valid", "train")
            if is_eval and name and train != name and train in names_in(source.tree):
                yield one(source.replace(given, train))


@operator("data-leakage", accepted=("evaluating-on-training-data",), judged=Judged.BY_LOG)
def validation_added_to_training(source: Source, strength: float) -> Iterator[Change]:
    """All of the validation set is trained on as well, so it is training data: both are true."""
    for call in training_loaders(source):
        mine = argument(call, 0, "dataset")
        for other in other_loaders(source):
            theirs = argument(other, 0, "dataset")
            if mine is None or theirs is None or source.scope(call) is not source.scope(other):
                continue
            if names_in(theirs) & names_in(mine) and isinstance(mine, ast.Name):
                continue
            both = f"torch.utils.data.ConcatDataset([{source.code(mine)}, {source.code(theirs)}])"
            if "import torch\n" in source.text:
                yield one(source.replace(mine, both))


@operator("data-leakage", judged=Judged.BY_LOG)
def target_among_features(source: Source, strength: float) -> Iterator[Change]:
    """The label is written into a feature, for training and validation alike."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if last(node.value) == "train_test_split" and len(node.value.args) >= 2:
            x, y = source.code(node.value.args[0]), source.code(node.value.args[1])
            if x.isidentifier() and y.isidentifier():
                yield one(source.before(node, f"{x}[:, 0] = {y}"))
    sets = tensor_sets(source)
    if sets and sets[0].is_training and named(source, "random_split"):
        x, y = sets[0].inputs, sets[0].labels
        yield one(
            source.before(sets[0].statement, f"{x}[:, 0] = {y}.reshape(-1, *[1] * ({x}.dim() - 2))")
        )


@operator("empty-validation", judged=Judged.BY_LOG, ends=Ends.EITHER)
def last_batch_dropped(source: Source, strength: float) -> Iterator[Change]:
    """A batch larger than the set, with `drop_last`: there is no validation batch at all."""
    for call in other_loaders(source):
        size = keyword(call, "batch_size")
        if size is not None and keyword(call, "drop_last") is None:
            yield one(source.replace(size, "4096, drop_last=True"))


@operator("empty-validation", judged=Judged.BY_LOG, ends=Ends.EITHER)
def slice_beyond_the_end(source: Source, strength: float) -> Iterator[Change]:
    """The validation part starts where the data ends."""
    words = ("val", "test")
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple | ast.Call):
            continue
        told = source.code(node.targets[0]).lower()
        slices = [
            n.slice.lower
            for n in ast.walk(node.value)
            if isinstance(n, ast.Subscript)
            and isinstance(n.slice, ast.Slice)
            and n.slice.lower is not None
            and n.slice.upper is None
        ]
        starts = [s for s in slices if number(source, s) is not None]
        if starts and any(w in told for w in words):
            yield many(*(source.replace(s, "1_000_000") for s in starts))


@operator("preprocessing-mismatch", strengths=(255, 2))
def validation_on_another_scale(source: Source, strength: float) -> Iterator[Change]:
    for call in evaluations(source):
        if isinstance(call.args[0], ast.Name | ast.Subscript):
            yield one(source.wrap(call.args[0], "", f" * {strength:g}"))


@operator("preprocessing-mismatch", accepted=("distribution-shift",))
def validation_not_centred(source: Source, strength: float) -> Iterator[Change]:
    """An offset that only validation has: seen from outside it is a shift of the data."""
    for call in evaluations(source):
        if isinstance(call.args[0], ast.Name | ast.Subscript):
            yield one(source.wrap(call.args[0], "", " + 3.0"))


@operator("augmentation-in-validation", accepted=("preprocessing-mismatch",), strengths=(1, 4))
def noise_in_validation(source: Source, strength: float) -> Iterator[Change]:
    """Random noise on validation inputs only: they are preprocessed otherwise than in training."""
    for call in evaluations(source):
        if isinstance(call.args[0], ast.Name):
            name = call.args[0].id
            yield one(source.wrap(call.args[0], "", f" + {strength:g} * torch.randn_like({name})"))


@operator("metric-bug", judged=Judged.BY_LOG)
def count_of_batches_for_examples(source: Source, strength: float) -> Iterator[Change]:
    """Divides by the batches, not by the examples: an accuracy above one."""
    for node in source.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        told = source.code(node.left).lower()
        is_count = any(w in told for w in ("correct", "hits", "right"))
        if is_count and isinstance(node.right, ast.Call) and last(node.right) == "len":
            inner = node.right.args[0]
            if isinstance(inner, ast.Attribute) and inner.attr == "dataset":
                yield one(source.replace(inner, source.code(inner.value)))
    for node in source.nodes:
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        is_count = dotted(node.target) in ("total", "seen", "count", "n")
        is_evaluating = not any(node in ast.walk(b) for s in steps(source) for b in s.block)
        told = source.code(node.value)
        if is_count and is_evaluating and told.startswith(("len(", "labels.", "y")):
            yield one(source.replace(node.value, "1"))


@operator("metric-bug", judged=Judged.BY_LOG)
def comparison_broadcast(source: Source, strength: float) -> Iterator[Change]:
    """(N, 1) compared with (N): every prediction against every label."""
    for node in source.nodes:
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Eq)
            and (
                any(last(n) == "argmax" for n in ast.walk(node.left) if isinstance(n, ast.Call))
                or dotted(node.left) in ("predicted", "predictions", "pred", "preds")
            )
        ):
            yield one(source.wrap(node.left, "", ".unsqueeze(-1)"))


@operator("metric-bug", judged=Judged.BY_LOG)
def counter_never_reset(source: Source, strength: float) -> Iterator[Change]:
    """The counter starts once, ahead of all epochs."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant | ast.Tuple):
            continue
        told = source.code(node.targets[0]).lower()
        loop = source.around(node, ast.For)
        is_counter = any(w in told for w in ("correct", "hits"))
        if is_counter and isinstance(loop, ast.For) and node in loop.body:
            first = source.code(node.targets[0]).strip("()").split(",")[0].strip()
            rest = [x.strip() for x in source.code(node.targets[0]).strip("()").split(",")[1:]]
            kept = f"{', '.join(rest)} = {', '.join('0' for _ in rest)}" if rest else "pass"
            moved = source.before(loop, f"{first} = 0")
            yield many(moved, source.replace(node, kept))


@operator("distribution-shift", strengths=(1,))
def split_by_class(source: Source, strength: float) -> Iterator[Change]:
    """Sorted ahead of a split by position: validation has the classes that training lacks."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        parts = [n for n in node.value.elts if isinstance(n, ast.Subscript)]
        if len(parts) != 2 or len(node.value.elts) != 2:
            continue
        names = [dotted(p.value) for p in parts]
        is_first = all(isinstance(p.slice, ast.Slice) and p.slice.lower is None for p in parts)
        if is_first and all(names) and "train" in source.code(node.targets[0]).lower():
            x, y = names
            yield one(
                source.before(
                    node, f"by_label = {y}.argsort()", f"{x}, {y} = {x}[by_label], {y}[by_label]"
                )
            )
    for data in tensor_sets(source):
        text = source.code(data.statement)
        if data.is_training and "[:" in text and "train" in text:
            x, y = data.inputs, data.labels
            lines = (f"by_label = {y}.argsort()", f"{x}, {y} = {x}[by_label], {y}[by_label]")
            yield one(source.before(data.statement, *lines))


@operator("class-imbalance", accepted=("class-collapse",), strengths=(0.01, 0.2))
def classes_thinned_out(source: Source, strength: float) -> Iterator[Change]:
    """Nearly all training examples are of one class; what comes of it is that class for all."""
    for data in tensor_sets(source):
        if data.is_training and all_losses(source, "classes") and "random_split" not in source.text:
            x, y = data.inputs, data.labels
            if not data.is_whole:
                continue
            keep = f"keep = ({y} == 0) | (torch.rand(len({y})) < {strength:g})"
            yield one(source.before(data.statement, keep, f"{x}, {y} = {x}[keep], {y}[keep]"))


@operator("label-noise", strengths=(0.5, 0.9, 0.03))
def labels_partly_random(source: Source, strength: float) -> Iterator[Change]:
    for data in tensor_sets(source):
        if data.is_training and all_losses(source, "classes"):
            y = data.labels
            wrong = f"wrong = torch.rand(len({y})) < {strength:g}"
            mixed = f"{y}[wrong] = {y}[torch.randperm(len({y}))][wrong]"
            yield one(source.before(data.statement, wrong, mixed))
    for step in steps(source):
        for loss in all_losses(source, "classes"):
            if not isinstance(loss.target, ast.Name) or step.made is None:
                continue
            y = loss.target.id
            yield one(
                source.before(
                    source.statement(loss.call),
                    f"wrong = torch.rand({y}.shape) < {strength:g}",
                    f"{y} = torch.where(wrong, {y}.roll(1, 0), {y})",
                )
            )


@operator("catastrophic-forgetting", accepted=("data-distribution-change",))
def one_task_after_the_other(source: Source, strength: float) -> Iterator[Change]:
    """The first half of the epochs has one half of the classes, the second the other."""
    for step in loop_steps(source):
        found = [x for x in all_losses(source, "classes") if isinstance(x.target, ast.Name)]
        inner = source.around(step.backward, ast.For)
        outer = source.around(inner, ast.For) if inner else None
        if not found or not isinstance(inner, ast.For) or not isinstance(outer, ast.For):
            continue
        names = [n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name)]
        if len(names) < 2 or not isinstance(outer.target, ast.Name):
            continue
        x, y = names[-2], names[-1]
        is_range = isinstance(outer.iter, ast.Call) and last(outer.iter) == "range"
        if is_range and isinstance(outer.iter, ast.Call) and dotted(found[0].target) == y:
            half = f"({source.code(outer.iter.args[-1])}) // 2"
            yield one(
                source.before(
                    inner.body[0],
                    f"wanted = {y} % 2 == int({outer.target.id} >= {half})",
                    f"{x}, {y} = {x}[wanted], {y}[wanted]",
                )
            )


@operator("overfitting", strengths=(24, 60))
def few_examples_many_times(source: Source, strength: float) -> Iterator[Change]:
    """A handful of training examples, each seen a hundred times."""
    n = f"{strength:g}"
    for data in tensor_sets(source):
        text = source.code(data.statement)
        if not data.is_training or "train" not in text.lower() or "random_split" in source.text:
            continue
        x, y = data.inputs, data.labels
        few = f"{x}, {y} = {x}[:{n}].repeat_interleave(25, 0), {y}[:{n}].repeat_interleave(25, 0)"
        if "[:" not in text and "[" not in text.split("TensorDataset")[-1]:
            yield one(source.before(data.statement, few))
    for call in training_loaders(source):
        given = argument(call, 0, "dataset")
        if isinstance(given, ast.Name) and "random_split" in source.text:
            some = f"torch.utils.data.Subset({given.id}, list(range({n})) * 25)"
            yield one(source.replace(given, some))


@operator("batchnorm-small-batch", ends=Ends.EITHER, judged=Judged.BY_OUTCOME, strengths=(1, 2))
def batch_too_small_for_norm(source: Source, strength: float) -> Iterator[Change]:
    """A batch of one or two under batch normalisation; the epochs are cut to keep the run short."""
    if not any(w in source.text for w in ("BatchNorm", "from model import")):
        return
    for call in training_loaders(source):
        size = keyword(call, "batch_size")
        if size is not None and keyword(call, "shuffle") is not None:
            yield one(source.replace(size, f"{strength:g}"))
