"""Other forms of wrong types, devices, indices, views and names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import building, forwards, layers, losses, model_calls, optimizers, steps
from bench.corpus.operators import tensors as first
from bench.corpus.sites import expressions, loss_targets, model_inputs
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, last, named, targets
from bench.corpus.writing import Side, Site, ahead, called, forms, function, inline, lines


def _float_types(source: Source) -> Iterator[ast.expr]:
    for call in named(source, "tensor", "as_tensor"):
        kind = keyword(call, "dtype")
        if kind is not None and last(kind) == "float32":
            yield call
    for call in named(source, "float"):
        if isinstance(call.func, ast.Attribute) and not call.args:
            yield call


forms(
    first.inputs_in_double,
    expressions(_float_types),
    known={"method": inline("<x>.double()"), "type-given": inline("<x>.to(torch.float64)")},
    new={
        "in-a-function": function("x.type(torch.DoubleTensor)", "precise"),
        "through-numpy": inline("torch.from_numpy(np.asarray(<x>, dtype=float))"),
    },
)
forms(
    first.labels_as_floats,
    loss_targets("classes"),
    known={
        "type-given": inline("<x>.to(torch.float32)"),
        "a-line-ahead": ahead("<x> * 1.0", name="wanted"),
    },
    new={
        "in-a-function": function("x / 1", "labels_of"),
        "type-of-the-weights": inline("<x>.type(torch.get_default_dtype())"),
    },
)


def _plain_inputs(source: Source) -> Iterator[Site]:
    for site in model_inputs(source):
        if isinstance(site.nodes[0], ast.Name) and not layers(source, "Embedding"):
            yield site


forms(
    first.inputs_as_integers,
    _plain_inputs,
    known={
        "type-given": inline("<x>.to(torch.int64)"),
        "a-line-ahead": ahead("<x>.int()", name="inputs"),
    },
    new={
        "in-a-function": function("(x * 255).to(torch.uint8)", "to_bytes"),
        "rounded-to-whole": inline("<x>.round().to(dtype=torch.long)"),
    },
)


def _looked_up(source: Source) -> Iterator[ast.expr]:
    """Yield what tables of embeddings are called with."""
    for call in layers(source, "Embedding"):
        statement = source.statement(call)
        name = dotted(targets(statement)[0]) if targets(statement) else ""
        for use in source.calls():
            if name and dotted(use.func) == name and use.args:
                yield use.args[0]


forms(
    first.tokens_as_floats,
    expressions(_looked_up),
    known={
        "type-given": inline("<x>.to(torch.float32)"),
        "a-line-ahead": ahead("<x> * 1.0", name="tokens_read"),
    },
    new={
        "in-a-function": function("x / 1", "tokens_of"),
        "type-of-the-weights": inline("<x>.type(torch.get_default_dtype())"),
    },
)
forms(
    first.tokens_counted_from_one,
    expressions(_looked_up),
    known={
        "method": inline("<x>.add(1)"),
        "a-line-ahead": ahead("1 + <x>", name="tokens_read"),
    },
    new={
        "in-a-function": function("torch.add(x, torch.ones_like(x))", "tokens_of"),
        "shifted-for-padding": ahead("torch.where(<x> >= 0, <x> + 1, <x>)", name="tokens_read"),
    },
)


def _drawn_bounds(source: Source) -> Iterator[ast.expr]:
    for node in source.calls():
        if last(node) == "randint" and len(node.args) >= 2:
            is_in_step = any(source.statement(node) in s.block for s in steps(source))
            if "len(" in source.code(node.args[-2]) and is_in_step:
                yield node.args[-2]


forms(
    first.gather_beyond_the_end,
    expressions(_drawn_bounds),
    known={"twice": inline("2 * <x>"), "a-line-ahead": ahead("<x> + 400", name="highest")},
    new={"in-a-function": function("x + x // 2", "highest_index")},
)


def _countable_labels(source: Source) -> Iterator[Site]:
    if "arange" not in source.text or "cross_entropy" not in source.text:
        yield from loss_targets("classes")(source)


forms(
    first.labels_counted_from_one,
    _countable_labels,
    known={"method": inline("<x>.add(1)"), "a-line-ahead": ahead("1 + <x>", name="wanted")},
    new={
        "in-a-function": function("x + torch.ones_like(x)", "labels_of"),
        "less-a-negative": inline("<x>.sub(-1)"),
    },
)


def _named_targets(source: Source) -> Iterator[Site]:
    for site in loss_targets("classes")(source):
        if isinstance(site.nodes[0], ast.Name):
            yield site


RARE = "torch.rand(<x>.shape) < 0.05"
forms(
    first.unknown_label_is_minus_one,
    _named_targets,
    known={
        "masked": inline(f"<x>.masked_fill({RARE}, -1)"),
        "a-line-ahead": ahead(f"<x> - ({RARE}).long() * (<x> + 1)", name="wanted"),
    },
    new={
        "in-a-function": inline(
            "with_unknown(<x>)",
            "def with_unknown(labels):",
            "    labels = labels.clone()",
            "    labels[torch.rand(labels.shape) < 0.05] = -1",
            "    return labels",
        )
    },
)

# Views


def _reshapes(source: Source) -> Iterator[Site]:
    """Yield calls that make a transposed tensor flat or contiguous, with that tensor."""
    for node in source.calls():
        if not isinstance(node.func, ast.Attribute):
            continue
        inner = node.func.value
        is_moved = "transpose" in source.code(inner) or "permute" in source.code(inner)
        given = ", ".join(source.code(a) for a in node.args)
        if last(node) == "contiguous":
            yield Site((node,), words={"tensor": source.code(inner)})
        elif last(node) == "reshape" and is_moved:
            words = {"moved": source.code(inner), "given": given}
            yield Site((node,), words=words)


forms(
    first.view_of_transposed,
    _reshapes,
    known={
        "cloned-as-it-lies": inline("<tensor>.clone()"),
        "viewed-in-a-lambda": inline("(lambda t: t.view(<given>))(<moved>)"),
        "cast-as-it-lies": inline("<tensor>.float()"),
    },
    new={
        "in-a-function": inline("as_is(<tensor>)", "def as_is(t):", "    return t + 0"),
        "viewed-in-a-function": inline(
            "viewed(<moved>, <given>)", "def viewed(t, *shape):", "    return t.view(*shape)"
        ),
    },
)


def _flat_targets(source: Source) -> Iterator[Site]:
    for step in steps(source):
        for loss in losses(source, step):
            target = loss.target
            if isinstance(target, ast.Call) and last(target) in ("view", "reshape"):
                assert isinstance(target.func, ast.Attribute)
                given = ", ".join(source.code(a) for a in target.args)
                words = {"tensor": source.code(target.func.value), "given": given}
                yield Site((target,), words=words)


forms(
    first.logits_viewed_after_transpose,
    _flat_targets,
    known={
        "transposed": inline("<tensor>.transpose(0, 1).view(<given>)"),
        "permuted": inline("<tensor>.permute(1, 0).view(<given>)"),
    },
    new={
        "in-a-function": inline(
            "time_first(<tensor>).view(<given>)", "def time_first(t):", "    return t.movedim(0, 1)"
        ),
        "swapped": inline("<tensor>.swapaxes(0, 1).view(<given>)"),
    },
)


def _flattened(source: Source) -> Iterator[Site]:
    for forward in forwards(source):
        for node in ast.walk(forward):
            if isinstance(node, ast.Call) and last(node) == "flatten":
                func = node.func
                if isinstance(func, ast.Attribute) and dotted(func.value) != "torch":
                    yield Site((node,), words={"tensor": source.code(func.value)})


ROWS = "view(len(<tensor>), -1)"
forms(
    first.flatten_as_view_of_permuted,
    _flattened,
    known={
        "transposed": inline(f"<tensor>.transpose(1, 3).{ROWS}"),
        "moved": inline(f"<tensor>.movedim(1, -1).{ROWS}"),
    },
    new={
        "in-a-function": inline(
            "flat(<tensor>)", "def flat(x):", "    return x.permute(0, 2, 3, 1).view(x.size(0), -1)"
        ),
        "swapped": inline(f"torch.swapaxes(<tensor>, 1, 2).{ROWS}"),
    },
)

# Devices


def _built(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source):
        made = building(source, optimizer.model) if optimizer.model else None
        if made is not None and "\n" not in source.code(made):
            words = {"model": optimizer.model, "statement": source.code(made)}
            yield Site((made.value,), made, Side.INSTEAD, words)


forms(
    first.model_left_on_meta_device,
    _built,
    known={
        "moved": inline('<x>.to("meta")'),
        "default-device": lines(
            'torch.set_default_device("meta")', "<statement>", 'torch.set_default_device("cpu")'
        ),
    },
    new={
        "emptied": inline('<x>.to_empty(device="meta")'),
        "in-a-function": inline(
            "skeleton(lambda: <x>)",
            "def skeleton(make):",
            '    with torch.device("meta"):',
            "        return make()",
        ),
    },
)
forms(
    first.batch_left_on_meta_device,
    model_inputs,
    known={
        "a-line-ahead": ahead('<x>.to(device="meta")', name="inputs"),
        "made-like-it": inline('torch.empty_like(<x>, device="meta")'),
    },
    new={
        "in-a-function": function('x.to(torch.device("meta"))', "to_device"),
        "device-with-a-name": inline("<x>.to(DEVICE_NAME)", 'DEVICE_NAME = "meta"'),
    },
)

# Names


def _overwritten_criteria(source: Source) -> Iterator[Site]:
    """Yield the lines behind a loss whose criterion is a name."""
    for step in steps(source):
        made = step.made
        if made is None or not isinstance(made.value, ast.Call) or not step.is_loop:
            continue
        if isinstance(made.value.func, ast.Name) and "." not in step.loss:
            words = {"loss": step.loss, "criterion": made.value.func.id}
            yield Site(anchor=made, side=Side.AFTER, words=words)


forms(
    first.criterion_overwritten,
    _overwritten_criteria,
    known={
        "kept-for-the-log": lines("<criterion> = <loss>.item()"),
        "both-names-at-once": lines("<criterion> = <loss> = <loss> * 1.0"),
    },
    new={
        "loop-variable": lines("for <criterion> in (<loss>,):", "    pass"),
        "walrus": lines("if (<criterion> := <loss>.detach()) is None:", "    break"),
    },
)


def _overwritten_models(source: Source) -> Iterator[Site]:
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            parent = source.parents[call]
            is_plain = isinstance(parent, ast.Assign) and isinstance(call.func, ast.Name)
            if not is_plain or not isinstance(parent, ast.Assign) or not step.is_loop:
                continue
            if isinstance(call.func, ast.Name) and isinstance(parent.targets[0], ast.Name):
                words = {"model": call.func.id, "out": parent.targets[0].id}
                if call.func.id != "self":
                    yield Site(anchor=parent, side=Side.AFTER, words=words)


forms(
    first.model_overwritten,
    _overwritten_models,
    known={
        "kept-for-later": lines("<model> = <out>.detach()"),
        "both-names-at-once": lines("<model> = <out> = <out> * 1.0"),
    },
    new={
        "loop-variable": lines("for <model> in [<out>]:", "    pass"),
        "walrus": lines("if (<model> := <out>.detach()) is None:", "    break"),
    },
)

# Versions


def _held_models(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source):
        if optimizer.model and optimizer.model != "self":
            yield Site(anchor=optimizer.statement, words={"model": optimizer.model})


forms(
    first.compiled_without_cuda,
    _held_models,
    known={
        "device-by-name": lines('<model>.to("cuda")'),
        "device-object": lines('<model>.to(torch.device("cuda", 0))'),
    },
    new={
        "in-a-function": called("to_gpu", "<model>", "<model>.cuda(0)"),
        "tensor-on-the-card": lines('torch.zeros(1, device="cuda:0")'),
    },
)


def _numpy_floats(source: Source) -> Iterator[ast.expr]:
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and dotted(node) == "np.float32":
            yield node


forms(
    first.numpy_alias_removed,
    expressions(_numpy_floats),
    known={
        "by-getattr": inline('getattr(np, "float")'),
        "with-a-name": inline("NUMBER", "NUMBER = np.float"),
    },
    new={"in-a-function": inline("kind()", "def kind():", "    return np.float_")},
)
GRAM = "gram = next(<model>.parameters()).detach().flatten(1)"
forms(
    first.torch_function_removed,
    _held_models,
    known={
        "factors": lines(GRAM, "factors = torch.lstsq(gram.T, gram.T)"),
        "rank": lines(GRAM, "rank = torch.matrix_rank(gram)"),
    },
    new={
        "in-a-function": lines(
            "describe(<model>)",
            top=(
                "def describe(module):",
                "    gram = next(module.parameters()).detach().flatten(1)",
                "    return torch.eig(gram @ gram.T)",
            ),
        ),
        "solved": lines(GRAM, "answer = torch.solve(gram.T, gram @ gram.T)"),
    },
)
