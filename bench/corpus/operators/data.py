"""Inputs and labels that are not what the model needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import losses, model_calls, steps, tensor_sets, training_loaders
from bench.corpus.operators import Change, crash, many, one, operator
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, last, named, targets


@operator("unnormalised-inputs", strengths=(50, 1000, 3))
def inputs_on_a_large_scale(source: Source, strength: float) -> Iterator[Change]:
    """Every use of the data is on the large scale, in training and validation."""
    for data in tensor_sets(source):
        if data.is_training:
            whole = made_whole(source, data.inputs, data.statement)
            if whole is not None:
                name = dotted(targets(whole)[0])
                yield one(source.after(whole, f"{name} = {name} * {strength:g}"))


def made_whole(source: Source, name: str, before: ast.stmt) -> ast.Assign | None:
    """Return the statement that makes a named tensor, followed through a split by position."""
    for node in reversed(source.nodes):
        if not isinstance(node, ast.Assign) or node.lineno >= before.lineno:
            continue
        if name not in {dotted(t) for t in targets(node)}:
            continue
        if isinstance(node.value, ast.Tuple):
            inner = [dotted(e.value) for e in node.value.elts if isinstance(e, ast.Subscript)]
            place = [dotted(t) for t in targets(node)].index(name)
            return made_whole(source, inner[place], node) if len(inner) > place else None
        return node if len(targets(node)) == 1 else None
    return None


@operator("unnormalised-inputs", strengths=(1,))
def normalisation_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
            continue
        value = node.value
        told = source.code(value)
        is_standard = isinstance(value.op, ast.Div) and ("mean" in told or "std" in told)
        left = value.left
        is_centred = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub)
        if is_standard and is_centred and isinstance(left, ast.BinOp):
            is_input = isinstance(left.left, ast.Name) and not _is_in_step(source, node)
            if is_input:
                yield one(source.replace(value, source.code(left.left)))
        by = value.right.value if isinstance(value.right, ast.Constant) else None
        is_scale = isinstance(value.op, ast.Div) and isinstance(by, int | float) and by >= 16
        if is_scale and not _is_in_step(source, node):
            yield one(source.replace(value, source.code(left)))


def _is_in_step(source: Source, node: ast.stmt) -> bool:
    return any(node in s.block for s in steps(source))


@operator("unnormalised-inputs")
def scaler_not_applied(source: Source, strength: float) -> Iterator[Change]:
    """The scaler is fitted and its result is not used, in training and validation."""
    calls = [c for c in named(source, "transform", "fit_transform") if c.args]
    used = [
        c
        for c in calls
        if "scaler" in source.code(c.func).lower() and "x" in source.code(c).lower()
    ]
    edits = [source.replace(c, f"1000.0 * {source.code(c.args[0])}") for c in used]
    if edits:
        yield many(*edits)


@operator("unnormalised-targets", strengths=(1000,))
def targets_in_raw_units(source: Source, strength: float) -> Iterator[Change]:
    """Targets in the thousands; the metric must not depend on their unit."""
    if "r2" not in source.text.lower():
        return
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.BinOp):
            continue
        name, told = dotted(node.targets[0]), source.code(node.value)
        if name.startswith("y") and "mean" in told and "std" in told:
            yield one(source.replace(node.value, f"{strength:g} * {name}"))
    for node in source.nodes:
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and "std" in source.code(node)
        ):
            told = source.code(node.left)
            parent = source.parents[node]
            if told.startswith("(y") and isinstance(parent, ast.Call):
                every = [
                    n
                    for n in source.nodes
                    if isinstance(n, ast.BinOp)
                    and isinstance(n.op, ast.Div)
                    and source.code(n.left).startswith("(y")
                ]
                yield many(*(source.wrap(n, f"{strength:g} + {strength:g} * ", "") for n in every))
                return


@operator("degenerate-batch")
def inputs_all_alike(source: Source, strength: float) -> Iterator[Change]:
    """A wrong index: every input of a batch is the first one."""
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            if isinstance(call.args[0], ast.Name):
                x = call.args[0].id
                yield one(source.replace(call.args[0], f"{x}[:1].expand_as({x})"))


@operator("degenerate-batch", accepted=("class-collapse",))
def labels_all_alike(source: Source, strength: float) -> Iterator[Change]:
    """One label for all: the model that learns it predicts one class."""
    for loss in all_losses(source, "classes", "binary"):
        if isinstance(loss.target, ast.Name):
            yield one(source.replace(loss.target, f"torch.zeros_like({loss.target.id})"))


@operator("unshuffled-training-data")
def sorted_and_not_shuffled(source: Source, strength: float) -> Iterator[Change]:
    for data in tensor_sets(source):
        if not data.is_training or not all_losses(source, "classes"):
            continue
        for call in training_loaders(source):
            shuffle = keyword(call, "shuffle")
            text = source.code(data.statement)
            if (
                shuffle is None
                or "random_split" in source.text
                or "[" in text.split("Dataset(")[-1]
            ):
                continue
            x, y = data.inputs, data.labels
            lines = (f"by_label = {y}.argsort()", f"{x}, {y} = {x}[by_label], {y}[by_label]")
            yield many(source.replace(shuffle, "False"), source.before(data.statement, *lines))


@operator("unshuffled-training-data")
def sorted_inside_dataset(source: Source, strength: float) -> Iterator[Change]:
    """A data set of one's own that comes sorted by label, read in order."""
    for call in training_loaders(source):
        shuffle, given = keyword(call, "shuffle"), call.args[0] if call.args else None
        if shuffle is None or not isinstance(given, ast.Name) or "labels" not in source.text:
            continue
        if "CrossEntropy" in source.text or "cross_entropy" in source.text:
            d = given.id
            order = f"sorted(range(len({d})), key=lambda i: int({d}[i][1]))"
            ordered = source.replace(given, f"torch.utils.data.Subset({d}, {order})")
            yield many(source.replace(shuffle, "False"), ordered)


@operator("misaligned-labels", accepted=("label-noise",), strengths=(1, 7))
def labels_out_of_step(source: Source, strength: float) -> Iterator[Change]:
    """Labels shifted against their inputs: no better than random ones."""
    for data in tensor_sets(source):
        if data.is_training:
            y = data.labels
            yield one(source.before(data.statement, f"{y} = {y}.roll({strength:g}, 0)"))


@operator("misaligned-labels", accepted=("label-noise",))
def labels_shuffled_apart(source: Source, strength: float) -> Iterator[Change]:
    """The labels of each batch in another order than its inputs."""
    for step in steps(source):
        for loss in losses(source, step):
            if isinstance(loss.target, ast.Name) and "arange" not in source.text:
                y = loss.target.id
                if loss.kind in ("classes", "values") and y not in ("noise", "x"):
                    yield one(source.replace(loss.target, f"{y}[torch.randperm(len({y}))]"))


@operator("padding-in-loss", strengths=(1,))
def everything_ignored(source: Source, strength: float) -> Iterator[Change]:
    """The mask of what the loss ignores is the wrong way round: nothing is left."""
    for loss in all_losses(source, "classes"):
        if isinstance(loss.target, ast.Name | ast.Call) and last(loss.call) == "cross_entropy":
            code = source.code(loss.target)
            yield one(source.replace(loss.target, f"{code}.masked_fill({code} >= 0, -100)"))


@operator("padding-in-loss")
def padding_not_ignored(source: Source, strength: float) -> Iterator[Change]:
    for call in source.calls():
        ignored = keyword(call, "ignore_index")
        if ignored is not None:
            at = next(k for k in call.keywords if k.value is ignored)
            yield one(source.replace(at, "ignore_index=-100"))


@crash("worker-crash")
def worker_dies(source: Source, strength: float) -> Iterator[Change]:
    """A worker process ends without a word, as after a fault in a C library."""
    body = (
        "def collate_and_die(examples):",
        "    import os",
        "    if torch.utils.data.get_worker_info().id == 1:",
        "        os._exit(1)",
        "    return torch.utils.data.default_collate(examples)",
        "",
    )
    yield from _with_workers(source, body, "collate_and_die", "num_workers=2")


@crash("worker-crash")
def lambda_cannot_be_pickled(source: Source, strength: float) -> Iterator[Change]:
    for call in training_loaders(source):
        if keyword(call, "num_workers", "collate_fn") is None and "import torch\n" in source.text:
            final = [*call.args, *(k.value for k in call.keywords)][-1]
            more = (
                ", num_workers=1, multiprocessing_context='spawn', "
                "collate_fn=lambda b: torch.utils.data.default_collate(b)"
            )
            yield one(source.wrap(final, "", more))


def _with_workers(
    source: Source, body: tuple[str, ...], name: str, workers: str
) -> Iterator[Change]:
    for call in training_loaders(source):
        if keyword(call, "num_workers", "collate_fn") is None and "import torch\n" in source.text:
            top = source.at_top("", "", *body)
            final = [*call.args, *(k.value for k in call.keywords)][-1]
            use = source.wrap(final, "", f", {workers}, collate_fn={name}")
            yield Change((use, top), use)
