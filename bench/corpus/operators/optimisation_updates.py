"""The four calls of a training step, and what they act on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    building,
    clearings,
    clips,
    forwards,
    loop_steps,
    model_calls,
    modules,
    nearest_step,
    optimizers,
    ready_models,
    steps,
    updates,
)
from bench.corpus.operators import Change, Ends, Judged, crash, many, one, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, targets


@operator("missing-optimizer-step")
def step_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for statement, _ in updates(source):
        near = nearest_step(source, statement, is_ahead=True)
        if near is not None:
            yield Change((source.drop(statement),), near.backward)


@operator("missing-optimizer-step")
def nan_guard_inverted(source: Source, strength: float) -> Iterator[Change]:
    """A guard against bad losses the wrong way round: the step is there and does not happen."""
    for statement, _ in updates(source):
        step = nearest_step(source, statement, is_ahead=True)
        if step is not None and "." not in step.loss:
            guard = f"if not torch.isfinite({step.loss}):\n{source.indent(statement)}    "
            yield one(source.wrap(statement, guard, ""))


@operator("missing-zero-grad")
def zero_grad_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for statement, _ in clearings(source):
        near = nearest_step(source, statement, is_ahead=False)
        if near is not None:
            yield Change((source.drop(statement),), near.backward)


@operator("missing-zero-grad")
def zero_grad_moved_out_of_loop(source: Source, strength: float) -> Iterator[Change]:
    for statement, _ in clearings(source):
        loop = source.around(statement, ast.For)
        near = nearest_step(source, statement, is_ahead=False)
        if near is not None and isinstance(loop, ast.For) and statement in loop.body:
            moved = source.before(loop, source.code(statement))
            yield Change((moved, source.drop(statement)), near.backward)


@operator("missing-backward")
def backward_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        if step.made is not None:
            yield Change((source.drop(step.backward),), step.made)


@operator("gradients-cleared-before-step")
def zero_grad_after_backward(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for statement, owner in clearings(source):
            is_ahead = statement in step.earlier
            behind = step.block[step.block.index(step.backward) :]
            after = [s for s, name in updates(source) if s in behind and name == owner]
            mine = nearest_step(source, after[0], is_ahead=True) if after else None
            if is_ahead and mine is not None and mine.backward is step.backward:
                moved = source.after(step.backward, source.code(statement))
                yield many(moved, source.drop(statement))


@operator("gradient-accumulation-unscaled", accepted=("lr-too-high",), strengths=(4, 16))
def accumulation_without_division(source: Source, strength: float) -> Iterator[Change]:
    """Sums the gradients of several batches: with plain SGD that is a rate so many times higher."""
    k = f"{strength:g}"
    for step in loop_steps(source):
        found = [(s, o) for s, o in updates(source) if s in step.block]
        clear = [s for s, o in clearings(source) if s in step.block]
        loop = source.around(step.backward, ast.For)
        if len(found) != 1 or len(clear) != 1 or not isinstance(loop, ast.For):
            continue
        if loop.body is not step.block or len(loop_steps(source)) != 1:
            continue
        statement, owner = found[0]
        counted = source.before(loop, "micro_batches = 0")
        guarded = source.replace(
            statement,
            f"micro_batches += 1\n{source.indent(statement)}if micro_batches % {k} == 0:\n"
            f"{source.indent(statement)}    {owner}.step()\n"
            f"{source.indent(statement)}    {source.code(clear[0])}",
        )
        yield Change((guarded, counted, source.drop(clear[0])), step.backward)


@operator("gradient-accumulation-unscaled", accepted=("missing-zero-grad",), strengths=(4, 16))
def accumulation_stepped_every_time(source: Source, strength: float) -> Iterator[Change]:
    """Clears only every few batches and steps on each: the stale sums are applied again."""
    for step in loop_steps(source):
        clear = [s for s, o in clearings(source) if s in step.block]
        loop = source.around(step.backward, ast.For)
        if len(clear) != 1 or not isinstance(loop, ast.For) or loop.body is not step.block:
            continue
        indent = source.indent(clear[0])
        guarded = source.replace(
            clear[0],
            f"if micro_batches % {strength:g} == 0:\n{indent}    {source.code(clear[0])}\n"
            f"{indent}micro_batches += 1",
        )
        yield many(guarded, source.before(loop, "micro_batches = 0"))


@operator("clip-after-step", judged=Judged.ALWAYS)
def clip_moved_after_step(source: Source, strength: float) -> Iterator[Change]:
    for statement, _ in clips(source):
        for stepped, _ in updates(source):
            if stepped in source.siblings(statement) and isinstance(statement, ast.Expr):
                yield many(source.after(stepped, source.code(statement)), source.drop(statement))


@operator("parameters-not-in-optimizer")
def model_made_again(source: Source, strength: float) -> Iterator[Change]:
    """The optimizer holds the parameters of a model that is no longer used."""
    for optimizer in optimizers(source):
        made = building(source, optimizer.model) if optimizer.model else None
        if made is not None and source.scope(made) is source.scope(optimizer.statement):
            yield one(source.after(optimizer.statement, source.code(made)))


@operator("parameters-not-in-optimizer")
def last_layer_only(source: Source, strength: float) -> Iterator[Change]:
    for optimizer in optimizers(source):
        if optimizer.model and "." not in optimizer.model:
            some = f"list({optimizer.model}.parameters())[-1:]"
            yield one(source.replace(optimizer.parameters, some))


@operator("parameters-not-in-optimizer")
def one_of_two_models_forgotten(source: Source, strength: float) -> Iterator[Change]:
    """`list(a.parameters()) + list(b.parameters())` without the first."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            sides = [source.code(node.left), source.code(node.right)]
            if all("parameters()" in s for s in sides):
                yield one(source.replace(node, sides[1]))


@operator("frozen-parameters", strengths=(0.9, 0.5))
def weights_frozen(source: Source, strength: float) -> Iterator[Change]:
    """Freezes the first part of the parameters, all but the last few."""
    for statement, model in ready_models(source):
        yield one(
            source.before(
                statement,
                f"for p in list({model}.parameters())[: int({strength:g} * "
                f"len(list({model}.parameters())))]:",
                "    p.requires_grad = False",
            )
        )


@crash("frozen-parameters", accepted=("detached-loss", "no-grad-training"))
def everything_frozen(source: Source, strength: float) -> Iterator[Change]:
    """The message is the same as that of a loss without a graph."""
    for statement, model in ready_models(source):
        yield one(source.before(statement, f"{model}.requires_grad_(False)"))


@operator("detached-loss", accepted=("missing-backward",))
def loss_wrapped_anew(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        if step.made is not None and len(targets(step.made)) == 1:
            new = f"{step.loss} = torch.tensor({step.loss}.item(), requires_grad=True)"
            yield one(source.after(step.made, new))


@crash("detached-loss", accepted=("no-grad-training",))
def output_detached(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for call in model_calls(source, step):
            parent = source.parents[call]
            is_sole = len(model_calls(source, step)) == 1
            if (is_sole and not isinstance(parent, ast.Assign | ast.Attribute)) or (
                is_sole and isinstance(parent, ast.Assign) and len(targets(parent)) == 1
            ):
                yield one(source.wrap(call, "", ".detach()"))


@operator("detached-loss", accepted=("frozen-parameters",))
def features_detached(source: Source, strength: float) -> Iterator[Change]:
    """The graph is cut in the middle of the model: what lies below never learns."""
    for forward in forwards(source):
        made = [s for s in forward.body if isinstance(s, ast.Assign)]
        for statement in made[:-1]:
            if isinstance(statement.value, ast.Call) and len(targets(statement)) == 1:
                yield one(source.wrap(statement.value, "", ".detach()"))


@operator("detached-loss", accepted=("non-differentiable-operation",), ends=Ends.EITHER)
def output_through_numpy(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for call in model_calls(source, step):
            parent = source.parents[call]
            if isinstance(parent, ast.Assign) and len(targets(parent)) == 1:
                name = dotted(targets(parent)[0])
                new = f"{name} = torch.from_numpy({name}.detach().numpy()).requires_grad_()"
                yield one(source.after(parent, new))


@operator("unregistered-submodules", accepted=("parameters-not-in-optimizer",), ends=Ends.EITHER)
def module_list_made_plain(source: Source, strength: float) -> Iterator[Change]:
    for node in source.calls():
        if dotted(node.func) == "nn.ModuleList" and node.args:
            yield one(source.replace(node, source.code(node.args[0])))


@operator("unregistered-submodules", accepted=("parameters-not-in-optimizer",))
def layer_hidden_in_list(source: Source, strength: float) -> Iterator[Change]:
    for klass in modules(source):
        made = [
            (n, n.targets[0])
            for n in ast.walk(klass)
            if isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Attribute)
            and isinstance(n.value, ast.Call)
            and dotted(n.value.func) in ("nn.Linear", "nn.Conv2d", "nn.Sequential")
        ]
        for statement, target in made[:2]:
            told = dotted(target)
            uses = [
                n
                for n in ast.walk(klass)
                if isinstance(n, ast.Attribute) and dotted(n) == told and n is not target
            ]
            called = [n for n in uses if isinstance(source.parents[n], ast.Call)]
            if uses and len(called) == len(uses):
                hidden = source.wrap(statement.value, "[", "]")
                yield many(hidden, *(source.wrap(u, "", "[0]") for u in uses))
