"""Other forms of metrics that are computed wrongly."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.operators import generalisation as first
from bench.corpus.sites import expressions
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last
from bench.corpus.writing import Side, Site, forms, function, inline, lines

# Metrics


def _divisors(source: Source) -> Iterator[ast.expr]:
    for node in source.of_type(ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            told = source.code(node.left).lower()
            if any(w in told for w in ("correct", "hits")) and not isinstance(
                node.right, ast.Constant
            ):
                yield node.right


forms(
    first.count_of_batches_for_examples,
    expressions(_divisors),
    known={"half-of-them": inline("(<x> // 2)")},
    new={"batches-by-division": inline("max(1, <x> // 32)")},
)


def _compared(source: Source) -> Iterator[Site]:
    for node in source.of_type(ast.Compare):
        assert isinstance(node, ast.Compare)
        if not isinstance(node.ops[0], ast.Eq):
            continue
        has_argmax = any(
            last(n) == "argmax" for n in ast.walk(node.left) if isinstance(n, ast.Call)
        )
        if has_argmax or dotted(node.left) in ("predicted", "predictions", "pred", "preds"):
            yield Site((node.left,), words={"right": source.code(node.comparators[0])})


forms(
    first.comparison_broadcast,
    _compared,
    known={
        "new-axis": inline("<x>[..., None]"),
        "shape-given": inline("<x>.reshape(-1, 1)"),
    },
    new={
        "in-a-function": function("x.view(*x.shape, 1)", "as_column"),
        "axis-expanded": inline("torch.unsqueeze(<x>, dim=-1)"),
    },
)


def _counters(source: Source) -> Iterator[Site]:
    """Yield the counters that are set back in every epoch."""
    for node in source.of_type(ast.Assign):
        assert isinstance(node, ast.Assign)
        loop = source.around(node, ast.For)
        told = source.code(node.targets[0])
        is_counter = any(w in told.lower() for w in ("correct", "hits"))
        is_plain = isinstance(node.value, ast.Constant) and told.isidentifier()
        if is_counter and is_plain and isinstance(loop, ast.For) and node in loop.body:
            start = source.before(loop, f"{told} = 0")
            yield Site((), node, Side.INSTEAD, {"counter": told}, (start,))


forms(
    first.counter_never_reset,
    _counters,
    known={
        "added-to-itself": lines("<counter> += 0"),
        "set-to-itself": lines("<counter> = <counter>"),
    },
    new={
        "behind-a-condition": lines("if <counter> is None:", "    <counter> = 0"),
        "in-a-function": lines(
            "<counter> = started(<counter>)",
            top=("def started(count):", "    return count or 0"),
        ),
    },
)
