"""Memory that grows, or is spent for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, model_calls, quiet_blocks
from bench.corpus.operators import Change, Judged, many, one, operator
from bench.corpus.source import Function, Source
from bench.corpus.syntax import last


@operator("graph-kept-alive", accepted=("graph-retained-across-steps",), judged=Judged.ALWAYS)
def item_forgotten(source: Source, strength: float) -> Iterator[Change]:
    """`total += loss`: the sum holds the graphs of all steps, which is what both names say."""
    for step in loop_steps(source):
        after = step.block[step.block.index(step.backward) :]
        for statement in after:
            is_sum = isinstance(statement, ast.AugAssign) or "append(" in source.code(statement)
            for node in ast.walk(statement):
                if not isinstance(node, ast.Call) or last(node) != "item" or not is_sum:
                    continue
                if (
                    isinstance(node.func, ast.Attribute)
                    and source.code(node.func.value) == step.loss
                ) and not isinstance(statement, ast.If):
                    yield one(source.replace(node, step.loss))


@operator("graph-kept-alive", accepted=("graph-retained-across-steps",), judged=Judged.ALWAYS)
def losses_kept_for_a_plot(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        if isinstance(loop, ast.For) and "." not in step.loss:
            kept = source.after(step.block[-1], f"loss_history.append({step.loss})")
            yield many(kept, source.before(loop, "loss_history = []"))


@operator("evaluation-with-grad", judged=Judged.ALWAYS)
def no_grad_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for block in quiet_blocks(source):
        is_judging = "loss" in source.code(block) or "argmax" in source.code(block)
        if isinstance(block, ast.With) and len(block.items) == 1 and is_judging:
            yield Change((source.dedent(block),), block)
        if isinstance(block, Function) and len(block.decorator_list) == 1 and is_judging:
            decorator = block.decorator_list[0]
            start = source.span(decorator)[0] - 1
            end = source.span(block)[0]
            edit = type(source.replace(decorator, ""))(start, end, "")
            yield Change((edit,), block)


@operator("host-memory-growth", judged=Judged.ALWAYS)
def batches_hoarded(source: Source, strength: float) -> Iterator[Change]:
    """Every batch is kept, enlarged, for a look that never comes."""
    for step in loop_steps(source):
        calls = model_calls(source, step)
        loop = source.around(step.backward, ast.For)
        while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        if calls and isinstance(calls[0].args[0], ast.Name) and isinstance(loop, ast.For):
            x = calls[0].args[0].id
            grow = f"kept_batches.append({x}.float().mean() + torch.zeros(400_000))"
            yield many(source.after(step.backward, grow), source.before(loop, "kept_batches = []"))
