"""Other forms of training data that does not carry over."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    loop_steps,
    tensor_sets,
    training_loaders,
)
from bench.corpus.operators import generalisation as first
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.sites import expressions
from bench.corpus.source import Source
from bench.corpus.syntax import argument, dotted, keyword, last
from bench.corpus.writing import Site, Sites, ahead, forms, function, inline, lines

# Training data


def _splits(source: Source) -> Iterator[Site]:
    """Yield the lines ahead of a split by position, with the names of inputs and labels."""
    for change in first.split_by_class(source, 1.0):
        edit = change.edits[0]
        names = edit.text.splitlines()[-1].strip().split(" = ")[0].split(", ")
        line = source.line_at(edit.start)
        for node in source.nodes:
            if isinstance(node, ast.stmt) and node.lineno == line:
                yield Site(anchor=node, words={"inputs": names[0], "labels": names[1]})
                break


forms(
    first.split_by_class,
    _splits,
    known={
        "order-of-a-sort": lines(
            "<labels>, order = torch.sort(<labels>)", "<inputs> = <inputs>[order]"
        )
    },
    new={
        "in-a-function": lines(
            "<inputs>, <labels> = grouped(<inputs>, <labels>)",
            top=(
                "def grouped(inputs, labels):",
                "    order = torch.argsort(labels, stable=True)",
                "    return inputs[order], labels[order]",
            ),
        )
    },
)


def _class_sets(*, is_whole: bool) -> Sites:
    def sites(source: Source) -> Iterator[Site]:
        for data in tensor_sets(source):
            if not data.is_training or not all_losses(source, "classes"):
                continue
            if is_whole and (not data.is_whole or "random_split" in source.text):
                continue
            words = {"inputs": data.inputs, "labels": data.labels}
            yield Site(anchor=data.statement, words=words)

    return sites


RARE = "(torch.rand(len(<labels>)) < <s>)"
KEEP = "<inputs>, <labels> = <inputs>[kept], <labels>[kept]"
forms(
    first.classes_thinned_out,
    _class_sets(is_whole=True),
    known={
        "by-index": lines(f"kept = ((<labels> == 0) | {RARE}).nonzero().flatten()", KEEP),
        "by-removal": lines(f"kept = ~((<labels> != 0) & ~{RARE})", KEEP),
    },
    new={
        "in-a-function": lines(
            "<inputs>, <labels> = cleaned(<inputs>, <labels>)",
            top=(
                "def cleaned(inputs, labels):",
                "    kept = (labels == 0) | (torch.rand(len(labels)) < <s>)",
                "    return inputs[kept], labels[kept]",
            ),
        ),
        "by-weight": lines(
            "weight = torch.where(<labels> == 0, 1.0, <s>)",
            "kept = torch.multinomial(weight, len(<labels>), replacement=True)",
            KEEP,
        ),
    },
)
forms(
    first.labels_partly_random,
    _class_sets(is_whole=False),
    known={
        "chosen-by-condition": lines(
            f"<labels> = torch.where({RARE}, <labels>[torch.randperm(len(<labels>))], <labels>)"
        ),
        "one-by-one": lines(
            "for place in range(len(<labels>)):",
            "    if torch.rand(1) < <s>:",
            "        <labels>[place] = <labels>[torch.randint(len(<labels>), (1,))].item()",
        ),
    },
)


def _class_targets(source: Source) -> Iterator[Site]:
    for loss in all_losses(source, "classes"):
        if isinstance(loss.target, ast.Name):
            yield Site((loss.target,))


forms(
    first.labels_partly_random,
    _class_targets,
    new={
        "in-a-function": inline(
            "as_annotated(<x>)",
            "def as_annotated(labels):",
            "    is_wrong = torch.rand(labels.shape) < <s>",
            "    return torch.where(is_wrong, labels.flip(0), labels)",
        ),
        "a-line-ahead": ahead(
            "torch.where(torch.rand(<x>.shape) < <s>, <x>.roll(2, 0), <x>)", name="wanted"
        ),
    },
)


def _tasks(source: Source) -> Iterator[Site]:
    """Yield the first line of the loop over batches, with the epochs and their number."""
    for step in loop_steps(source):
        found = [x for x in all_losses(source, "classes") if isinstance(x.target, ast.Name)]
        inner = source.around(step.backward, ast.For)
        outer = source.around(inner, ast.For) if inner else None
        if not found or not isinstance(inner, ast.For) or not isinstance(outer, ast.For):
            continue
        names = [n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name)]
        is_range = isinstance(outer.iter, ast.Call) and last(outer.iter) == "range"
        if len(names) < 2 or not isinstance(outer.target, ast.Name) or not is_range:
            continue
        assert isinstance(outer.iter, ast.Call)
        if dotted(found[0].target) == names[-1]:
            words = {"inputs": names[-2], "labels": names[-1], "epoch": outer.target.id}
            words["epochs"] = source.code(outer.iter.args[-1])
            yield Site(anchor=inner.body[0], words=words)


SECOND = "<epoch> >= (<epochs>) // 2"
PART = "<inputs>, <labels> = <inputs>[part], <labels>[part]"
forms(
    first.one_task_after_the_other,
    _tasks,
    known={
        "two-branches": lines(
            f"if {SECOND}:",
            "    part = <labels> % 2 == 1",
            "else:",
            "    part = <labels> % 2 == 0",
            PART,
        ),
        "by-index": lines(f"part = (<labels> % 2 == int({SECOND})).nonzero().flatten()", PART),
    },
    new={
        "in-a-function": lines(
            f"<inputs>, <labels> = of_task(<inputs>, <labels>, {SECOND})",
            top=(
                "def of_task(inputs, labels, is_second):",
                "    part = labels % 2 == int(is_second)",
                "    return inputs[part], labels[part]",
            ),
        )
    },
)


def _whole_sets(source: Source) -> Iterator[Site]:
    """Yield the lines ahead of training sets that can be cut."""
    for data in tensor_sets(source):
        text = source.code(data.statement)
        is_cut = "[:" in text or "[" in text.split("TensorDataset")[-1]
        if not data.is_training or "random_split" in source.text:
            continue
        if "train" in text.lower() and not is_cut:
            words = {"inputs": data.inputs, "labels": data.labels}
            yield Site(anchor=data.statement, words=words)


def _split_sets(source: Source) -> Iterator[ast.expr]:
    for call in training_loaders(source):
        given = argument(call, 0, "dataset")
        if isinstance(given, ast.Name) and "random_split" in source.text:
            yield given


forms(
    first.few_examples_many_times,
    _whole_sets,
    known={
        "by-index": lines(
            "few = torch.arange(<s>).repeat(25)",
            "<inputs>, <labels> = <inputs>[few], <labels>[few]",
        )
    },
    new={
        "in-a-function": lines(
            "<inputs>, <labels> = sample(<inputs>, <labels>)",
            top=(
                "def sample(inputs, labels):",
                "    few = torch.randint(0, <s>, (25 * <s>,))",
                "    return inputs[few], labels[few]",
            ),
        )
    },
)
forms(
    first.few_examples_many_times,
    expressions(_split_sets),
    known={
        "joined-to-itself": inline(
            "torch.utils.data.ConcatDataset([torch.utils.data.Subset(<x>, range(<s>))] * 25)"
        )
    },
    new={"as-a-list": inline("[<x>[i] for i in range(<s>)] * 25")},
)


def _batch_sizes(source: Source) -> Iterator[ast.expr]:
    if any(w in source.text for w in ("BatchNorm", "from model import")):
        for call in training_loaders(source):
            size = keyword(call, "batch_size")
            if size is not None and keyword(call, "shuffle") is not None:
                yield size


forms(
    first.batch_too_small_for_norm,
    expressions(_batch_sizes),
    known={
        "lower-of-two": inline("min(<x>, <s>)"),
        "with-a-name": inline("PER_STEP", "PER_STEP = <s>"),
    },
    new={
        "in-a-function": function("x // x * <s>", "per_step"),
        "divided-by-too-much": inline("<x> // 4096 + <s>"),
    },
)
