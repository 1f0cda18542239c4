"""Other forms of memory that grows, or is spent for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, model_calls, quiet_blocks
from bench.corpus.operators import Change, form, one
from bench.corpus.operators import memory as first
from bench.corpus.sites import outer_loop
from bench.corpus.source import Function, Source
from bench.corpus.syntax import last
from bench.corpus.writing import Side, Site, Sites, forms, inline, lines


def _items(source: Source) -> Iterator[Site]:
    """Yield the numbers of losses that are added up or kept."""
    for step in loop_steps(source):
        after = step.block[step.block.index(step.backward) :]
        for statement in after:
            is_sum = isinstance(statement, ast.AugAssign) or "append(" in source.code(statement)
            for node in ast.walk(statement):
                if not isinstance(node, ast.Call) or last(node) != "item" or not is_sum:
                    continue
                is_loss = isinstance(node.func, ast.Attribute) and (
                    source.code(node.func.value) == step.loss
                )
                if is_loss and not isinstance(statement, ast.If):
                    yield Site((node,), words={"loss": step.loss})


forms(
    first.item_forgotten,
    _items,
    known={
        "as-double": inline("<loss>.double()"),
        "cloned": inline("<loss>.clone()"),
    },
    new={
        "in-a-function": inline("value_of(<loss>)", "def value_of(loss):", "    return loss * 1.0"),
        "mean-of-it": inline("torch.mean(<loss>)"),
    },
)


def _kept(start: str) -> Sites:
    """Return the ends of training steps, with a line ahead of all epochs."""

    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            loop = outer_loop(source, step.backward)
            if loop is None or "." in step.loss:
                continue
            calls = model_calls(source, step)
            words = {"loss": step.loss}
            if calls and isinstance(calls[0].args[0], ast.Name):
                words["input"] = calls[0].args[0].id
            if isinstance(step.block[-1], ast.Continue | ast.Break | ast.Return):
                continue
            along = (source.before(loop, start),)
            yield Site((), step.block[-1], Side.AFTER, words, along)

    return sites


forms(
    first.losses_kept_for_a_plot,
    _kept("curve = {}"),
    known={
        "in-a-table": lines("curve[len(curve)] = <loss>"),
        "in-a-table-of-pairs": lines("curve.setdefault('loss', []).append((len(curve), <loss>))"),
    },
)
forms(
    first.losses_kept_for_a_plot,
    _kept("curve = []"),
    new={
        "list-made-longer": lines("curve += [<loss>]"),
        "in-a-function": lines(
            "note(curve, <loss>)", top=("def note(kept, value):", "    kept.append(value)")
        ),
        "running-mean": lines(
            "curve.append(0.9 * (curve[-1] if curve else <loss>) + 0.1 * <loss>)"
        ),
    },
)


def _judging_blocks(source: Source) -> Iterator[ast.With | Function]:
    for block in quiet_blocks(source):
        if "loss" in source.code(block) or "argmax" in source.code(block):
            yield block


def _contexts(source: Source, text: str) -> Iterator[Change]:
    """Write another context or decorator in place of the one without gradients."""
    for block in _judging_blocks(source):
        if isinstance(block, ast.With) and len(block.items) == 1:
            yield one(source.replace(block.items[0].context_expr, text))
        if isinstance(block, Function) and len(block.decorator_list) == 1:
            yield one(source.replace(block.decorator_list[0], text))


@form(first.no_grad_taken_away)
def enabled_by_mistake(source: Source, strength: float) -> Iterator[Change]:
    yield from _contexts(source, "torch.set_grad_enabled(True)")


@form(first.no_grad_taken_away)
def inference_mode_off(source: Source, strength: float) -> Iterator[Change]:
    yield from _contexts(source, "torch.inference_mode(False)")


@form(first.no_grad_taken_away, is_new=True)
def enable_grad_for_no_grad(source: Source, strength: float) -> Iterator[Change]:
    yield from _contexts(source, "torch.enable_grad()")


@form(first.no_grad_taken_away, is_new=True)
def enabled_again_inside(source: Source, strength: float) -> Iterator[Change]:
    for block in _judging_blocks(source):
        is_text = isinstance(block.body[0], ast.Expr) and isinstance(
            block.body[0].value, ast.Constant
        )
        if not is_text:
            yield one(source.before(block.body[0], "torch.set_grad_enabled(True)"))


GROWN = "<input>.float().mean() + torch.zeros(400_000)"
forms(
    first.batches_hoarded,
    _kept("kept_batches = {}"),
    known={
        "in-a-table": lines(f"kept_batches[len(kept_batches)] = {GROWN}"),
        "as-arrays": lines(f"kept_batches[len(kept_batches)] = ({GROWN}).numpy()"),
    },
)
forms(
    first.batches_hoarded,
    _kept("kept_batches = []"),
    new={
        "in-a-function": lines(
            "remember(kept_batches, <input>)",
            top=(
                "def remember(kept, batch):",
                "    kept.append(batch.float().mean() + torch.zeros(400_000))",
            ),
        ),
        "list-made-longer": lines(f"kept_batches = [*kept_batches, {GROWN}]"),
    },
)
