"""Numbers that stop being numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, model_calls, optimizers, steps, tensor_sets, updates
from bench.corpus.operators import Change, Ends, many, one, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, named, targets


@operator("nan-in-data", strengths=(0.001, 0.05))
def missing_values_in_table(source: Source, strength: float) -> Iterator[Change]:
    """A few of the training inputs are NaN, as a table with gaps has them."""
    for data in tensor_sets(source):
        if data.is_training:
            gap = f"{data.inputs}[::{max(2, int(0.05 / strength)) * 10 + 1}] = float('nan')"
            yield one(source.before(data.statement, gap))


@operator("nan-in-data", strengths=(0.002, 0.2))
def missing_values_in_batch(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            code = source.code(call.args[0])
            gaps = f"torch.rand({code}.shape) < {strength:g}"
            yield one(source.replace(call.args[0], f"{code}.masked_fill({gaps}, float('nan'))"))


@operator("nan-in-data")
def infinite_target(source: Source, strength: float) -> Iterator[Change]:
    for data in tensor_sets(source):
        if data.is_training and "CrossEntropy" not in source.text:
            yield one(source.before(data.statement, f"{data.labels}[17] = float('inf')"))


@operator("unstable-operation")
def distance_from_start(source: Source, strength: float) -> Iterator[Change]:
    """A penalty on the distance from the first weights: the root has no slope at zero."""
    for step in loop_steps(source):
        for optimizer in optimizers(source):
            if not optimizer.model or step.made is None or len(targets(step.made)) != 1:
                continue
            if source.scope(optimizer.statement) is not source.scope(step.backward):
                continue
            m = optimizer.model
            start = source.after(
                optimizer.statement,
                f"first_weights = [p.detach().clone() for p in {m}.parameters()]",
            )
            pairs = f"zip({m}.parameters(), first_weights)"
            drift = source.after(
                step.made,
                f"drift = torch.sqrt(sum((p - q).pow(2).sum() for p, q in {pairs}))",
                f"{step.loss} = {step.loss} + 1e-3 * drift",
            )
            yield many(drift, start)


@operator("unstable-operation", accepted=("nan-in-data",))
def division_by_zero_spread(source: Source, strength: float) -> Iterator[Change]:
    """Columns that never change have no spread: the division makes the NaN of the data."""
    for node in source.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        right = node.right
        if isinstance(right, ast.Call) and last(right) == "std" and not right.args:
            assert isinstance(right.func, ast.Attribute)
            yield one(source.replace(right, f"{source.code(right.func.value)}.std(0)"))
        if isinstance(right, ast.Constant) and isinstance(node.left, ast.Call | ast.Name):
            is_data = "tensor" in source.code(node.left) or "images" in source.code(node.left)
            scope = source.statement(node)
            if is_data and isinstance(scope, ast.Assign) and len(targets(scope)) == 1:
                name = dotted(targets(scope)[0])
                if "." not in name and name and node is scope.value:
                    centred = f"{name} = ({name} - {name}.mean(0)) / {name}.std(0)"
                    yield one(source.after(scope, centred))


@operator("fp16-overflow", strengths=(2.0**16, 2.0**20), ends=Ends.EITHER)
def loss_scaled_in_half(source: Source, strength: float) -> Iterator[Change]:
    """A loss scale by hand, in half precision, without looking for overflow."""
    for step in loop_steps(source):
        stepped = [(s, o) for s, o in updates(source) if s in step.block]
        models = [o.model for o in optimizers(source) if o.model]
        if len(stepped) != 1 or not models or len(loop_steps(source)) != 1:
            continue
        statement, _ = stepped[0]
        if source.scope(optimizers(source)[0].statement) is not source.scope(statement):
            continue
        scaled = source.replace(step.backward, f"({step.loss}.half() * {strength:g}).backward()")
        unscale = source.before(
            statement,
            f"for p in {models[0]}.parameters():",
            "    if p.grad is not None:",
            f"        p.grad /= {strength:g}",
        )
        if source.code(step.backward) == f"{step.loss}.backward()":
            yield many(scaled, unscale)


@operator("loss-scale-collapse", accepted=("fp16-overflow",))
def scaler_without_end(source: Source, strength: float) -> Iterator[Change]:
    """Gradients that overflow at every scale: the scaler halves for ever and skips every step."""
    for step in loop_steps(source):
        stepped = [(s, o) for s, o in updates(source) if s in step.block]
        plain = source.code(step.backward) == f"{step.loss}.backward()"
        if len(stepped) != 1 or len(loop_steps(source)) != 1 or not plain:
            continue
        loop = source.around(step.backward, ast.For)
        if not isinstance(loop, ast.For) or loop.body is not step.block:
            continue
        statement, owner = stepped[0]
        large = f"(({step.loss}.half() * 300.0) ** 2).float()"
        back = source.replace(step.backward, f"scaler.scale({large}).backward()")
        update = source.replace(
            statement,
            f"scaler.step({owner})\n{source.indent(statement)}scaler.update()",
        )
        yield many(back, update, source.before(loop, "scaler = torch.amp.GradScaler('cpu')"))


@operator("fully-masked-attention", ends=Ends.EITHER)
def mask_one_too_far(source: Source, strength: float) -> Iterator[Change]:
    """The causal mask hides the token itself: nothing is left for the first one."""
    for call in named(source, "tril"):
        if not any(k.arg == "diagonal" for k in call.keywords) and len(call.args) == 1:
            yield one(source.wrap(call.args[0], "", ", diagonal=-1"))
    for call in named(source, "triu"):
        diagonal = [k.value for k in call.keywords if k.arg == "diagonal"] + call.args[1:2]
        if diagonal and source.code(diagonal[0]) == "1":
            yield one(source.replace(diagonal[0], "0"))


@operator("fully-masked-attention", ends=Ends.EITHER)
def padding_mask_all_true(source: Source, strength: float) -> Iterator[Change]:
    for node in source.nodes:
        if isinstance(node, ast.keyword) and node.arg == "src_key_padding_mask":
            yield one(source.wrap(node.value, "torch.ones_like(", ")"))
