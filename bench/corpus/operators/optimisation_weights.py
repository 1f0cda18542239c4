"""Initial weights, activations and capacity."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import activations, layers, loop_steps, model_calls, ready_models, steps
from bench.corpus.operators import Change, many, one, operator
from bench.corpus.operators.optimisation_rates import literal
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, targets


def initialised(source: Source, *body: str) -> Iterator[Change]:
    """Yield changes that run some lines over the parameters of a model ahead of its optimizer."""
    for statement, model in ready_models(source):
        lines = [line.replace("MODEL", model) for line in body]
        yield one(source.before(statement, *lines))


@operator("bad-initialisation", accepted=("dead-relu", "vanishing-gradients"))
def weights_zero(source: Source, strength: float) -> Iterator[Change]:
    """With all weights at zero no gradient passes and no ReLU is active."""
    body = ("for p in MODEL.parameters():", "    torch.nn.init.zeros_(p)")
    yield from initialised(source, *body)


@operator("bad-initialisation", strengths=(0.1, 1.0))
def weights_constant(source: Source, strength: float) -> Iterator[Change]:
    lines = ("for p in MODEL.parameters():", f"    torch.nn.init.constant_(p, {strength:g})")
    yield from initialised(source, *lines)


@operator("bad-initialisation", accepted=("exploding-activations",), strengths=(10, 50, 2))
def weights_too_large(source: Source, strength: float) -> Iterator[Change]:
    """Weights that are too large are what makes activations grow."""
    lines = (
        "with torch.no_grad():",
        "    for p in MODEL.parameters():",
        f"        p.mul_({strength:g})",
    )
    yield from initialised(source, *lines)


@operator("bad-initialisation", accepted=("vanishing-gradients",), strengths=(1e-2, 1e-4))
def weights_too_small(source: Source, strength: float) -> Iterator[Change]:
    """Weights near zero are what makes the gradients of deep layers fade."""
    lines = (
        "for p in MODEL.parameters():",
        "    if p.dim() > 1:",
        f"        torch.nn.init.normal_(p, std={strength:g})",
    )
    yield from initialised(source, *lines)


@operator("dead-relu", accepted=("bad-initialisation",), strengths=(1, 10))
def biases_far_negative(source: Source, strength: float) -> Iterator[Change]:
    """Both are true: the units are dead because of how the biases start."""
    if not any(last(a) in ("relu", "ReLU") for a in activations(source)):
        return
    yield from initialised(
        source,
        "for module in MODEL.modules():",
        '    if getattr(module, "bias", None) is not None:',
        f"        torch.nn.init.constant_(module.bias, -{strength:g})",
    )


@operator("saturated-activations", strengths=(10, 100))
def tanh_far_too_steep(source: Source, strength: float) -> Iterator[Change]:
    """Every activation becomes a tanh of a large argument."""
    found = [a for a in activations(source) if last(a)[0].islower()]
    edits = [
        source.replace(a, f"torch.tanh({strength:g} * {source.code(a.args[0])})") for a in found
    ]
    nested = [a for a in found if any(b is not a and b in ast.walk(a) for b in found)]
    if edits and not nested:
        yield many(*edits)


@operator("saturated-activations", accepted=("bad-initialisation",), strengths=(8, 30))
def sigmoids_with_large_weights(source: Source, strength: float) -> Iterator[Change]:
    """The weights drive the sigmoids to their ends: both are true."""
    found = [a for a in activations(source) if last(a)[0].isupper()]
    for statement, model in ready_models(source):
        start = source.before(
            statement,
            "with torch.no_grad():",
            f"    for p in {model}.parameters():",
            f"        p.mul_({strength:g})",
        )
        if found:
            yield many(start, *(source.replace(a, "nn.Sigmoid()") for a in found))


@operator(
    "vanishing-gradients",
    accepted=("too-deep-without-skip", "saturated-activations", "bad-initialisation"),
    strengths=(6, 12),
)
def sigmoid_tower(source: Source, strength: float) -> Iterator[Change]:
    """Many sigmoid layers: the gradient fades through their flat slopes, for want of a skip."""
    yield from _tower(source, int(strength), "nn.Sigmoid()")


@operator(
    "too-deep-without-skip", accepted=("vanishing-gradients", "dead-relu"), strengths=(12, 24)
)
def relu_tower(source: Source, strength: float) -> Iterator[Change]:
    """Plain depth with the usual initialisation: the signal fades on the way up and down."""
    yield from _tower(source, int(strength), "nn.ReLU()")


def _tower(source: Source, depth: int, activation: str) -> Iterator[Change]:
    """Put a tower of layers behind a hidden linear layer, of its own width."""
    for call in layers(source, "Linear"):
        if len(call.args) < 2 or dotted(call.func) != "nn.Linear":
            continue
        width = source.code(call.args[1])
        extra = f"*[m for _ in range({depth}) for m in (nn.Linear({width}, {width}), {activation})]"
        parent = source.parents[call]
        if isinstance(parent, ast.Call) and last(parent) == "Sequential":
            if parent.args.index(call) == len(parent.args) - 1:
                continue
            yield one(source.wrap(call, "", f", {activation}, {extra}"))
        elif isinstance(parent, ast.Assign) and not is_output(source, call):
            yield one(source.wrap(call, "nn.Sequential(", f", {activation}, {extra})"))


def is_output(source: Source, call: ast.Call) -> bool:
    """Tell whether a layer looks like the last one of its module."""
    klass = source.around(call, ast.ClassDef)
    inside = [c for c in layers(source, "Linear") if source.around(c, ast.ClassDef) is klass]
    return inside[-1] is call or len(inside) == 1


@operator("missing-nonlinearity")
def activations_taken_away(source: Source, strength: float) -> Iterator[Change]:
    found = activations(source)
    edits = []
    for call in found:
        if last(call)[0].isupper():
            edits.append(source.replace(call, "nn.Identity()"))
        elif not any(call is not a and call in ast.walk(a) for a in found):
            edits.append(source.replace(call, source.code(call.args[0])))
    if edits:
        yield many(*edits)


@operator("insufficient-capacity", strengths=(1, 2))
def hidden_width_cut(source: Source, strength: float) -> Iterator[Change]:
    """The hidden layers become a unit or two wide."""
    words = ("hidden", "width", "dim", "embd", "hidden_size", "units")
    for node in source.nodes:
        constant = _named_number(node, words)
        if constant is not None and type(constant.value) is int and constant.value > 4:
            yield one(source.replace(constant, literal(strength)))
    inner: dict[int, list[ast.Constant]] = {}
    for call in layers(source, "Linear", "Conv2d", "BatchNorm1d", "BatchNorm2d"):
        for argument in call.args[:2]:
            if isinstance(argument, ast.Constant) and type(argument.value) is int:
                inner.setdefault(argument.value, []).append(argument)
    twice = {w: a for w, a in inner.items() if len(a) >= 2 and w > 4}
    edits = [source.replace(a, literal(strength)) for places in twice.values() for a in places]
    if edits:
        yield many(*edits)


def _named_number(node: ast.AST, words: tuple[str, ...]) -> ast.Constant | None:
    """Return the number that a name with one of these words is given, as value or default."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        names = [str(getattr(t, "id", "")).lower() for t in targets(node)]
        if any(w in n for n in names for w in words):
            return node.value
    if isinstance(node, ast.arguments):
        return None
    if isinstance(node, ast.FunctionDef):
        given = node.args
        names = [a.arg for a in given.args][len(given.args) - len(given.defaults) :]
        for name, value in zip(names, given.defaults, strict=True):
            if any(w in name for w in words) and isinstance(value, ast.Constant):
                return value
    if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
        return node.value if node.arg in ("hidden_size",) else None
    if isinstance(node, ast.Call) and last(node) == "add_argument" and node.args:
        option = node.args[0]
        told = str(option.value) if isinstance(option, ast.Constant) else ""
        default = next((k.value for k in node.keywords if k.arg == "default"), None)
        if any(w in told for w in words) and isinstance(default, ast.Constant):
            return default
    return None


@operator("exploding-activations", strengths=(10, 100))
def activations_amplified(source: Source, strength: float) -> Iterator[Change]:
    """Each activation multiplies what passes: the signal grows layer by layer."""
    found = [a for a in activations(source) if last(a) in ("relu", "gelu", "silu", "leaky_relu")]
    edits = [source.wrap(a, f"{strength:g} * ", "") for a in found]
    nested = [a for a in found if any(b is not a and b in ast.walk(a) for b in found)]
    if edits and not nested:
        yield many(*edits)


@operator("data-distribution-change", strengths=(0.5,))
def inputs_change_halfway(source: Source, strength: float) -> Iterator[Change]:
    """From some step on the inputs come from elsewhere."""
    for step in loop_steps(source):
        outer = source.around(step.backward, ast.For)
        calls = model_calls(source, step)
        if (
            not isinstance(outer, ast.For)
            or not calls
            or not isinstance(calls[0].args[0], ast.Name)
        ):
            continue
        while isinstance(parent := source.around(outer, ast.For), ast.For):
            outer = parent
        if not isinstance(outer.target, ast.Name) or not isinstance(outer.iter, ast.Call):
            continue
        end = outer.iter.args[-1] if outer.iter.args and last(outer.iter) == "range" else None
        if end is not None:
            name = dotted(calls[0].args[0])
            first = source.statement(calls[0])
            yield one(
                source.before(
                    first,
                    f"if {outer.target.id} > {strength:g} * ({source.code(end)}):",
                    f"    {name} = 3.0 - 2.0 * {name}",
                )
            )


@operator("outlier-batch", strengths=(1e2, 1e4))
def one_batch_far_off(source: Source, strength: float) -> Iterator[Change]:
    """One batch comes in on another scale, late in the run."""
    for step in loop_steps(source):
        calls = model_calls(source, step)
        loop = source.around(step.backward, ast.For)
        if not calls or not isinstance(calls[0].args[0], ast.Name) or not isinstance(loop, ast.For):
            continue
        while isinstance(parent := source.around(loop, ast.For), ast.For):
            loop = parent
        name = dotted(calls[0].args[0])
        first = source.statement(calls[0])
        spike = source.before(
            first,
            "batches_seen += 1",
            "if batches_seen == 40:",
            f"    {name} = {name} * {strength:g}",
        )
        yield many(spike, source.before(loop, "batches_seen = 0"))


@operator("competing-losses", strengths=(1, 100))
def penalty_on_outputs(source: Source, strength: float) -> Iterator[Change]:
    """A second term pulls the outputs to zero and drowns the first."""
    for step in steps(source):
        calls = model_calls(source, step)
        parent = source.parents[calls[-1]] if calls else None
        if step.made is None or not isinstance(parent, ast.Assign) or len(targets(parent)) != 1:
            continue
        out = dotted(targets(parent)[0])
        if len(calls) == 1 and parent in step.block and parent is not step.made and out:
            term = f"{step.loss} = {step.loss} + {strength:g} * {out}.pow(2).sum()"
            yield one(source.after(step.made, term))
