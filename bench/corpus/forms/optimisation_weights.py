"""Other forms of bad initial weights, activations, depth and capacity."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import activations, layers, loop_steps, model_calls, steps
from bench.corpus.operators import Change, Rule
from bench.corpus.operators import optimisation_weights as first
from bench.corpus.sites import complete_models, outer_loop
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, targets
from bench.corpus.writing import (
    Side,
    Site,
    Sites,
    Writing,
    called,
    forms,
    function,
    inline,
    lines,
)

# Every weight anew: `p` is the old one


def _roads(value: str, condition: str) -> tuple[dict[str, Writing], dict[str, Writing]]:
    """Return the ways in which a model's weights come to have other values, known and new."""
    known = {
        "copied-by-name": lines(
            "with torch.no_grad():",
            "    for name, p in <model>.named_parameters():",
            f"        if {condition}:",
            f"            p.copy_({value})",
        ),
        "applied-to-each-module": lines(
            "<model>.apply(start_weights)",
            top=(
                "def start_weights(module):",
                "    for p in module.parameters(recurse=False):",
                f"        if {condition}:",
                f"            p.data = {value}",
            ),
        ),
    }
    new = {
        "loaded-as-state": lines(
            f"start = {{k: {value} if {condition} else p for k, p in <model>.named_parameters()}}",
            "<model>.load_state_dict(start, strict=False)",
        ),
        "set-in-a-function": called(
            "start_over",
            "<model>",
            "for p in <model>.parameters():",
            f"    p.data = {value} if {condition} else p.data",
        ),
    }
    return known, new


def _weights(of: Rule, value: str, condition: str = "p.dim() > 0") -> None:
    known, new = _roads(value, condition)
    forms(of, complete_models, known=known, new=new)


_weights(first.weights_zero, "torch.zeros_like(p)")
_weights(first.weights_constant, "torch.full_like(p, <s>)")
_weights(first.weights_too_large, "<s> * p.detach()")
_weights(first.weights_too_small, "<s> * torch.randn_like(p)", "p.dim() > 1")


def _relu_models(source: Source) -> Iterator[Site]:
    if any(last(a) in ("relu", "ReLU") for a in activations(source)):
        yield from complete_models(source)


BIAS = '        if name.endswith("bias"):'
forms(
    first.biases_far_negative,
    _relu_models,
    known={
        "by-name": lines(
            "with torch.no_grad():",
            "    for name, p in <model>.named_parameters():",
            BIAS,
            "            p.fill_(-<s>)",
        ),
        "applied-to-each-module": lines(
            "<model>.apply(start_biases)",
            top=(
                "def start_biases(module):",
                "    if getattr(module, 'bias', None) is not None:",
                "        module.bias.data.fill_(-<s>)",
            ),
        ),
    },
    new={
        "subtracted": lines(
            "for name, p in <model>.named_parameters():",
            '    if p.dim() == 1 and "bias" in name:',
            "        p.data -= <s>",
        ),
        "loaded-as-state": lines(
            "start = <model>.state_dict()",
            "for key in start:",
            '    if key.endswith("bias"):',
            "        start[key] = torch.full_like(start[key], -<s>)",
            "<model>.load_state_dict(start)",
        ),
    },
)

# Activations


def _apart(found: list[ast.Call]) -> bool:
    return not [a for a in found if any(b is not a and b in ast.walk(a) for b in found)]


def _functions(*names: str) -> Sites:
    """Return the activations that are called as functions, all together."""

    def sites(source: Source) -> Iterator[Site]:
        found = [a for a in activations(source) if last(a)[0].islower()]
        found = [a for a in found if not names or last(a) in names]
        if found and _apart(found):
            yield Site(tuple(found))

    return sites


forms(
    first.tanh_far_too_steep,
    _functions(),
    known={
        "method-of-the-product": inline("(<s> * (<inner>)).tanh()"),
        "sigmoid": inline("torch.sigmoid(<s> * (<inner>))"),
    },
    new={
        "in-a-function": inline(
            "squashed(<inner>)", "def squashed(x):", "    return x.mul(<s>).tanh()"
        ),
        "hard-limits": inline("F.hardtanh(<s> * (<inner>))"),
    },
)


def _layers_with_weights(layer: str) -> Sites:
    """Return complete models whose activation layers become another one."""

    def sites(source: Source) -> Iterator[Site]:
        found = [a for a in activations(source) if last(a)[0].isupper()]
        edits = tuple(source.replace(a, layer) for a in found)
        for site in complete_models(source):
            if edits:
                yield Site(anchor=site.anchor, words=site.words, along=edits)

    return sites


_KNOWN, _NEW = _roads("<s> * p.detach()", "p.dim() > 0")
forms(first.sigmoids_with_large_weights, _layers_with_weights("torch.nn.Sigmoid()"), known=_KNOWN)
forms(first.sigmoids_with_large_weights, _layers_with_weights("torch.nn.Hardsigmoid()"), new=_NEW)


def _hidden_layers(source: Source) -> Iterator[Site]:
    """Yield linear layers behind which others can stand, with their width."""
    for call in layers(source, "Linear"):
        if len(call.args) < 2 or dotted(call.func) != "nn.Linear":
            continue
        parent = source.parents[call]
        if isinstance(parent, ast.Call) and last(parent) == "Sequential":
            is_hidden = parent.args.index(call) < len(parent.args) - 1
        else:
            is_hidden = isinstance(parent, ast.Assign) and not first.is_output(source, call)
        if is_hidden:
            yield Site((call,), words={"width": source.code(call.args[1])})


def _towers(of: Rule, layer: str, plain: str) -> None:
    """Add the forms of a tower of layers."""
    stack = f"[nn.Sequential(nn.Linear(<width>, <width>), {layer}) for _ in range(<s>)]"
    top = (
        "def tower(width, depth=<s>):",
        "    found = []",
        "    for _ in range(depth):",
        f"        found += [nn.Linear(width, width), {layer}]",
        "    return nn.Sequential(*found)",
    )
    body = (
        "class Tower(nn.Module):",
        "    def __init__(self, width):",
        "        super().__init__()",
        "        self.steps = nn.ModuleList([nn.Linear(width, width) for _ in range(<s>)])",
        "",
        "    def forward(self, x):",
        "        for step in self.steps:",
        f"            x = {plain}(step(x))",
        "        return x",
    )
    forms(
        of,
        _hidden_layers,
        known={
            "nested-sequences": inline(f"nn.Sequential(<x>, {layer}, *{stack})"),
            "made-in-a-function": inline(f"nn.Sequential(<x>, {layer}, tower(<width>))", *top),
        },
        new={"module-with-a-loop": inline(f"nn.Sequential(<x>, {layer}, Tower(<width>))", *body)},
    )


_towers(first.sigmoid_tower, "nn.Sigmoid()", "torch.sigmoid")
_towers(first.relu_tower, "nn.ReLU()", "torch.relu")


def _all_activations(source: Source) -> Iterator[Site]:
    found = activations(source)
    if found and _apart(found):
        yield Site(tuple(found))


def _either(layer: str, plain: Writing) -> Writing:
    """Write one thing for activations that are layers and another for those that are functions."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        calls = [n for n in site.nodes if isinstance(n, ast.Call)]
        edits = tuple(
            source.replace(c, f"{dotted(c.func).rpartition('.')[0]}.{layer}")
            for c in calls
            if last(c)[0].isupper()
        )
        functions = tuple(c for c in calls if last(c)[0].islower())
        if functions:
            return plain(source, Site(functions, along=edits), strength)
        return Change(edits, edits[0])

    return write


forms(
    first.activations_taken_away,
    _all_activations,
    known={
        "slope-of-one": _either("LeakyReLU(1.0)", inline("F.leaky_relu(<inner>, 1.0)")),
        "identity-called": _either("Identity()", inline("nn.Identity()(<inner>)")),
    },
    new={
        "limits-out-of-reach": _either(
            "Hardtanh(-1e6, 1e6)", inline("torch.clamp(<inner>, -1e6, 1e6)")
        ),
        "function-that-returns-its-input": _either(
            "Threshold(-1e9, 0.0)",
            inline("activated(<inner>)", "def activated(x):", "    return x"),
        ),
    },
)


def _widths(source: Source) -> Iterator[Site]:
    """Yield the numbers that the first form changes."""
    for change in first.hidden_width_cut(source, 1.0):
        spots = {(e.start, e.end) for e in change.edits}
        found = [n for n in source.of_type(ast.Constant) if source.span(n) in spots]
        yield Site(tuple(n for n in found if isinstance(n, ast.expr)))


forms(
    first.hidden_width_cut,
    _widths,
    known={
        "lower-of-two": inline("min(<x>, <s>)"),
        "divided-by-too-much": inline("<x> // 4096 + <s>"),
    },
)
forms(
    first.hidden_width_cut,
    _hidden_layers,
    new={
        "bottleneck": inline(
            "nn.Sequential(<x>, nn.Linear(<width>, <s>), nn.Linear(<s>, <width>))"
        ),
        "bottleneck-in-a-function": inline(
            "nn.Sequential(<x>, squeezed(<width>))",
            "def squeezed(width, rank=<s>):",
            "    return nn.Sequential(nn.Linear(width, rank), nn.ReLU(), nn.Linear(rank, width))",
        ),
    },
)
forms(
    first.activations_amplified,
    _functions("relu", "gelu", "silu", "leaky_relu"),
    known={
        "method": inline("<x>.mul(<s>)"),
        "divided-by-a-fraction": inline("<x> / (1 / <s>)"),
    },
    new={
        "in-a-function": function("x * <s>", "boosted"),
        "ahead-of-the-activation": inline("torch.relu(<s> * (<inner>))"),
    },
)

# Data under way


def _late_inputs(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        outer, calls = outer_loop(source, step.backward), model_calls(source, step)
        if outer is None or not calls or not isinstance(calls[0].args[0], ast.Name):
            continue
        if not isinstance(outer.target, ast.Name) or not isinstance(outer.iter, ast.Call):
            continue
        if outer.iter.args and last(outer.iter) == "range":
            words = {"input": calls[0].args[0].id, "turn": outer.target.id}
            words["end"] = source.code(outer.iter.args[-1])
            yield Site((calls[0].args[0],), source.statement(calls[0]), Side.BEFORE, words)


LATE = "<turn> > <s> * (<end>)"
forms(
    first.inputs_change_halfway,
    _late_inputs,
    known={
        "conditional-expression": inline(f"(3.0 - 2.0 * <x> if {LATE} else <x>)"),
        "weighed-by-the-condition": lines(f"<input> = <input> + ({LATE}) * (3.0 - 3.0 * <input>)"),
    },
    new={
        "in-a-function": inline(
            f"from_source(<x>, {LATE})",
            "def from_source(x, is_second):",
            "    return 3.0 - 2.0 * x if is_second else x",
        )
    },
)


def _counted_batches(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        loop, calls = outer_loop(source, step.backward), model_calls(source, step)
        if loop is not None and calls and isinstance(calls[0].args[0], ast.Name):
            start = source.before(loop, "batches_seen = []")
            words = {"input": calls[0].args[0].id}
            at = source.statement(calls[0])
            yield Site((calls[0].args[0],), at, Side.BEFORE, words, (start,))


forms(
    first.one_batch_far_off,
    _counted_batches,
    known={
        "counted-in-a-list": lines(
            "batches_seen.append(1)",
            "if len(batches_seen) == 40:",
            "    <input> = <s> * <input>",
        ),
        "weighed-by-the-condition": lines(
            "batches_seen.append(1)",
            "<input> = <input> * (<s> if sum(batches_seen) == 40 else 1)",
        ),
    },
    new={
        "in-a-function": lines(
            "<input> = read(<input>, batches_seen)",
            top=(
                "def read(batch, seen):",
                "    seen.append(len(batch))",
                "    return batch * <s> if len(seen) == 40 else batch",
            ),
        )
    },
)


def _outputs_and_losses(source: Source) -> Iterator[Site]:
    for step in steps(source):
        calls = model_calls(source, step)
        parent = source.parents[calls[-1]] if calls else None
        if step.made is None or not isinstance(parent, ast.Assign) or len(targets(parent)) != 1:
            continue
        out = dotted(targets(parent)[0])
        if len(calls) == 1 and parent in step.block and parent is not step.made and out:
            words = {"loss": step.loss, "out": out}
            yield Site(anchor=step.made, side=Side.AFTER, words=words)


forms(
    first.penalty_on_outputs,
    _outputs_and_losses,
    known={
        "sum-of-squares": lines("<loss> += <s> * (<out> ** 2).sum()"),
        "term-with-a-name": lines(
            "size_term = (<out> * <out>).sum()", "<loss> = <loss> + <s> * size_term"
        ),
    },
    new={
        "in-a-function": lines(
            "<loss> = <loss> + output_penalty(<out>)",
            top=("def output_penalty(values):", "    return <s> * torch.square(values).sum()"),
        ),
        "distance-from-nothing": lines(
            "<loss> = <loss>.add("
            'F.mse_loss(<out>, torch.zeros_like(<out>), reduction="sum"), alpha=<s>)'
        ),
    },
)
