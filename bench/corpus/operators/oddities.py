"""Innocent modifications: what looks unusual, and does no harm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    clearings,
    clips,
    layers,
    loop_steps,
    method,
    modules,
    optimizers,
    ready_models,
    schedule_steps,
    tensor_sets,
    training_loaders,
    updates,
)
from bench.corpus.operators import Change, many, oddity, one
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.operators.optimisation_rates import scaled
from bench.corpus.source import Source
from bench.corpus.syntax import keyword, last, named, number


def outermost(source: Source, node: ast.AST) -> ast.For | None:
    """Return the outermost loop around a node."""
    loop = source.around(node, ast.For)
    while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
        loop = parent
    return loop if isinstance(loop, ast.For) else None


def _single(source: Source) -> bool:
    return len(loop_steps(source)) == 1


@oddity()
def bias_ahead_of_batchnorm(source: Source, strength: float) -> Iterator[Change]:
    """The bias gets no gradient worth the name, by design."""
    if named(source, "BatchNorm1d", "BatchNorm2d"):
        for call in layers(source, "Conv2d", "Linear"):
            bias = keyword(call, "bias")
            if bias is not None and source.code(bias) == "False":
                yield one(source.replace(bias, "True"))


@oddity()
def embedding_frozen_on_purpose(source: Source, strength: float) -> Iterator[Change]:
    for statement, model in ready_models(source):
        if named(source, "Embedding"):
            lines = (
                "# position table stays as it is, as in the paper",
                f"for module in list({model}.modules()):",
                "    if isinstance(module, torch.nn.Embedding) and module.num_embeddings > 30:",
                "        module.weight.requires_grad = False",
            )
            yield one(source.before(statement, *lines))


@oddity()
def norm_scales_frozen(source: Source, strength: float) -> Iterator[Change]:
    for statement, model in ready_models(source):
        lines = (
            "# the scale is redundant before the next linear layer",
            "NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.LayerNorm)",
            f"for module in {model}.modules():",
            "    if isinstance(module, NORMS):",
            "        module.weight.requires_grad_(False)",
        )
        if any(w in source.text for w in ("BatchNorm", "LayerNorm", "from model import")):
            yield one(source.before(statement, *lines))


@oddity()
def accumulation_done_right(source: Source, strength: float) -> Iterator[Change]:
    """Two micro-batches a step, divided, at a rate that makes up for the fewer steps."""
    for step in loop_steps(source):
        found = [(s, o) for s, o in updates(source) if s in step.block]
        clear = [s for s, o in clearings(source) if s in step.block]
        loop = source.around(step.backward, ast.For)
        plain = source.code(step.backward) == f"{step.loss}.backward()"
        if len(found) != 1 or len(clear) != 1 or not isinstance(loop, ast.For) or not plain:
            continue
        if loop.body is not step.block or not _single(source) or schedule_steps(source):
            continue
        statement, owner = found[0]
        indent = source.indent(statement)
        guarded = source.replace(
            statement,
            f"micro += 1\n{indent}if micro % 2 == 0:\n{indent}    {owner}.step()\n"
            f"{indent}    {source.code(clear[0])}",
        )
        back = source.replace(step.backward, f"({step.loss} / 2).backward()")
        top = outermost(source, step.backward) or loop
        rate = [scaled(source, o.rate, 1.5) for o in optimizers(source) if o.rate is not None][:1]
        yield many(guarded, back, source.before(top, "micro = 0"), source.drop(clear[0]), *rate)


@oddity()
def gradients_set_to_zero_tensors(source: Source, strength: float) -> Iterator[Change]:
    for statement, owner in clearings(source):
        yield one(source.replace(statement, f"{owner}.zero_grad(set_to_none=False)"))


@oddity()
def gradients_cleared_twice(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for statement, owner in updates(source):
            if statement in step.block and _single(source):
                yield one(source.after(statement, f"{owner}.zero_grad()  # free the memory early"))


@oddity()
def few_labels_wrong(source: Source, strength: float) -> Iterator[Change]:
    for data in tensor_sets(source):
        if data.is_training and all_losses(source, "classes"):
            y = data.labels
            lines = (
                f"doubtful = torch.rand(len({y})) < 0.015",
                f"{y}[doubtful] = {y}[torch.randperm(len({y}))][doubtful]",
            )
            if data.is_whole and "random_split" not in source.text:
                yield one(source.before(data.statement, *lines))


@oddity()
def cosine_with_restarts(source: Source, strength: float) -> Iterator[Change]:
    for optimizer in optimizers(source):
        near = [s for s, o in updates(source) if o == optimizer.name]
        if not near or schedule_steps(source) or not _single(source):
            continue
        if source.scope(near[0]) is source.scope(optimizer.statement):
            made = (
                "restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts("
                f"{optimizer.name}, T_0=60, eta_min=1e-4)"
            )
            if "import torch\n" in source.text:
                yield many(
                    source.after(near[0], "restarts.step()"),
                    source.after(optimizer.statement, made),
                )


@oddity()
def warmup_put_in(source: Source, strength: float) -> Iterator[Change]:
    for optimizer in optimizers(source):
        near = [s for s, o in updates(source) if o == optimizer.name]
        if not near or schedule_steps(source) or "import torch\n" not in source.text:
            continue
        if source.scope(near[0]) is source.scope(optimizer.statement):
            made = f"warmup = torch.optim.lr_scheduler.LinearLR({optimizer.name}, 0.1, 1.0, 20)"
            yield many(
                source.after(near[0], "warmup.step()"), source.after(optimizer.statement, made)
            )


@oddity()
def slower_and_longer(source: Source, strength: float) -> Iterator[Change]:
    """Half the rate and twice the epochs."""
    for step in loop_steps(source):
        loop = outermost(source, step.backward)
        if loop is None or not isinstance(loop.iter, ast.Call) or last(loop.iter) != "range":
            continue
        end = loop.iter.args[-1]
        rate = next((o.rate for o in optimizers(source) if o.rate is not None), None)
        if rate is not None and _single(source) and not schedule_steps(source):
            yield many(scaled(source, rate, 0.5), source.wrap(end, "2 * (", ")"))


@oddity()
def strong_dropout(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Dropout"):
        if call.args and isinstance(call.args[0], ast.Constant):
            yield one(source.replace(call.args[0], "0.5"))


@oddity()
def labels_smoothed(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        if last(loss.call) == "cross_entropy" and keyword(loss.call, "label_smoothing") is None:
            yield one(source.wrap(loss.target, "", ", label_smoothing=0.1"))
    for call in named(source, "CrossEntropyLoss"):
        if not call.args and not call.keywords:
            yield one(source.replace(call, f"{source.code(call.func)}(label_smoothing=0.1)"))


@oddity()
def generous_clip(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for statement, owner in updates(source):
            models = [o.model for o in optimizers(source) if o.name == owner and o.model]
            if statement in step.block and models and not clips(source):
                clip = f"torch.nn.utils.clip_grad_norm_({models[0]}.parameters(), 50.0)"
                yield one(source.before(statement, clip))


@oddity()
def noisy_log(source: Source, strength: float) -> Iterator[Change]:
    """Warnings, Unicode and words that sound like trouble."""
    lines = (
        'print("⚠ warning: cuDNN not found – running on CPU 🐢 (this is fine)")',
        'print("note: NaN handling = drop, inf handling = clip, error tolerance = 1e-3")',
        '__import__("warnings").warn("the given NumPy array is not writable", stacklevel=1)',
    )
    for step in loop_steps(source):
        loop = outermost(source, step.backward)
        if loop is not None:
            yield one(source.before(loop, *lines))


@oddity()
def every_step_printed(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        loop = outermost(source, step.backward)
        if loop is not None and _single(source) and "." not in step.loss:
            line = f'print(f"  step {{step_no}}: loss={{{step.loss}.item():.5f}}")'
            yield many(
                source.after(step.backward, line, "step_no += 1"),
                source.before(loop, "step_no = 0"),
            )


@oddity()
def order_fixed_for_mixed_data(source: Source, strength: float) -> Iterator[Change]:
    """No shuffling, where the data are in no order anyway."""
    for call in training_loaders(source):
        shuffle = keyword(call, "shuffle")
        if shuffle is not None and source.code(shuffle) == "True":
            yield one(source.replace(shuffle, "False"))


@oddity()
def spare_head_without_gradient(source: Source, strength: float) -> Iterator[Change]:
    for klass in modules(source):
        init = method(klass, "__init__")
        if init is not None and len(init.body) > 1 and "from torch import nn" in source.text:
            yield one(
                source.after(
                    init.body[-1],
                    "self.spare_head = nn.Linear(16, 3)  # for the second stage",
                    "self.spare_head.requires_grad_(False)",
                )
            )


@oddity()
def larger_batch(source: Source, strength: float) -> Iterator[Change]:
    for call in training_loaders(source):
        size = number(source, keyword(call, "batch_size"))
        if size is not None and isinstance(size.value, int):
            rate = [scaled(source, o.rate, 1.5) for o in optimizers(source) if o.rate is not None]
            yield many(source.replace(size, str(2 * size.value)), *rate[:1])


@oddity()
def smaller_batch(source: Source, strength: float) -> Iterator[Change]:
    for call in training_loaders(source):
        size = number(source, keyword(call, "batch_size"))
        if size is not None and isinstance(size.value, int) and size.value >= 16:
            rate = [scaled(source, o.rate, 0.7) for o in optimizers(source) if o.rate is not None]
            yield many(source.replace(size, str(size.value // 2)), *rate[:1])


@oddity()
def no_weight_decay(source: Source, strength: float) -> Iterator[Change]:
    for call in [o.call for o in optimizers(source)] + named(source, "TrainingArguments"):
        decay = keyword(call, "weight_decay")
        if decay is not None:
            yield one(source.replace(number(source, decay) or decay, "0.0"))


@oddity()
def some_weight_decay(source: Source, strength: float) -> Iterator[Change]:
    for optimizer in optimizers(source):
        if keyword(optimizer.call, "weight_decay") is None and optimizer.rate is not None:
            yield one(source.wrap(optimizer.rate, "", ", weight_decay=1e-5"))


@oddity()
def mistyped_freeze(source: Source, strength: float) -> Iterator[Change]:
    """An attribute that torch does not know: nothing is frozen."""
    for statement, model in ready_models(source):
        lines = (f"for p in {model}.parameters():", "    p.requires_gradient = True")
        yield one(source.before(statement, *lines))


@oddity()
def average_of_weights_kept(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        for optimizer in optimizers(source):
            near = [s for s, o in updates(source) if s in step.block and o == optimizer.name]
            is_near = near and source.scope(near[0]) is source.scope(optimizer.statement)
            if is_near and optimizer.model and _single(source):
                m = optimizer.model
                update = source.after(
                    near[0],
                    "with torch.no_grad():",
                    f"    for slow, fast in zip(average.parameters(), {m}.parameters()):",
                    "        slow.lerp_(fast, 0.02)",
                )
                made = source.after(
                    optimizer.statement, f"average = __import__('copy').deepcopy({m})"
                )
                yield many(update, made)


@oddity()
def saved_and_loaded_again(source: Source, strength: float) -> Iterator[Change]:
    is_alone = "init_process_group" not in source.text  # ranks would race for the file
    for statement, model in ready_models(source):
        if is_alone and "import torch\n" in source.text:
            lines = (
                f'torch.save({model}.state_dict(), "start.pt")',
                f'{model}.load_state_dict(torch.load("start.pt"))',
            )
            yield one(source.before(statement, *lines))


@oddity()
def scaling_done_right(source: Source, strength: float) -> Iterator[Change]:
    """A gradient scaler with everything that belongs to it."""
    for step in loop_steps(source):
        found = [(s, o) for s, o in updates(source) if s in step.block]
        loop = outermost(source, step.backward)
        plain = source.code(step.backward) == f"{step.loss}.backward()"
        if len(found) != 1 or loop is None or not plain or not _single(source):
            continue
        statement, owner = found[0]
        indent = source.indent(statement)
        text = f"scaler.step({owner})\n{indent}scaler.update()"
        edits = [
            source.replace(step.backward, f"scaler.scale({step.loss}).backward()"),
            source.replace(statement, text),
            source.before(loop, "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)"),
        ]
        if clips(source):
            edits[0] = source.replace(
                step.backward,
                f"scaler.scale({step.loss}).backward()\n{source.indent(step.backward)}"
                f"scaler.unscale_({owner})",
            )
        yield many(*edits)


@oddity()
def guard_against_bad_losses(source: Source, strength: float) -> Iterator[Change]:
    for step in loop_steps(source):
        loop = source.around(step.backward, ast.For)
        is_plain = isinstance(loop, ast.For) and loop.body is step.block and "." not in step.loss
        if is_plain and _single(source):
            lines = (f"if not torch.isfinite({step.loss}):", "    continue  # never seen so far")
            yield one(source.before(step.backward, *lines))


@oddity()
def weights_drawn_anew(source: Source, strength: float) -> Iterator[Change]:
    """Xavier initialisation in place of the default."""
    for statement, model in ready_models(source):
        lines = (
            f"for name, p in {model}.named_parameters():",
            '    if p.dim() > 1 and "emb" not in name and "wte" not in name and "wpe" not in name:',
            "        torch.nn.init.xavier_uniform_(p)",
        )
        if "std=0.02" not in source.text and "from model" not in source.text:
            yield one(source.before(statement, *lines))


@oddity()
def optimizer_given_groups(source: Source, strength: float) -> Iterator[Change]:
    """Biases without decay, in a group of their own."""
    for optimizer in optimizers(source):
        m = optimizer.model
        if m and m != "self":
            groups = (
                f'[{{"params": [p for p in {m}.parameters() if p.dim() > 1]}}, '
                f'{{"params": [p for p in {m}.parameters() if p.dim() <= 1], "weight_decay": 0.0}}]'
            )
            yield one(source.replace(optimizer.parameters, groups))
