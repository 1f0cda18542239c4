"""Other forms of graphs that are cut, freed, kept or changed under way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import ACTIVATIONS, activations, forwards, loop_steps, model_calls, steps
from bench.corpus.operators import Change, form
from bench.corpus.operators import autograd as first
from bench.corpus.sites import behind_losses, outer_loop, sole_outputs, step_words
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, targets
from bench.corpus.writing import Side, Site, Sites, forms, function, inline, lines


def _kept_outputs(source: Source) -> Iterator[Site]:
    """Yield the lines behind activations whose output backward needs."""
    kept = ("relu", "tanh", "sigmoid", "softmax", "exp")
    for forward in forwards(source):
        for statement in forward.body:
            if not isinstance(statement, ast.Assign) or len(targets(statement)) != 1:
                continue
            name = dotted(targets(statement)[0])
            if isinstance(statement.value, ast.Call) and last(statement.value) in kept and name:
                yield Site(anchor=statement, side=Side.AFTER, words={"out": name})


forms(
    first.activation_changed_in_place,
    _kept_outputs,
    known={
        "method": lines("<out>.add_(1.0)"),
        "part-of-it": lines("<out>[..., 0] = 1.0"),
    },
    new={
        "multiplied": lines("<out> *= 0.5"),
        "in-a-function": lines(
            "centre(<out>)", top=("def centre(values):", "    values.sub_(values.mean().detach())")
        ),
    },
)


def _called_models(source: Source) -> Iterator[Site]:
    for site in behind_losses(source):
        if "called" in site.words:
            yield site


WEIGHTS = "<called>.parameters()"
forms(
    first.weights_stepped_before_backward,
    _called_models,
    known={
        "clamped": lines(
            "with torch.no_grad():", f"    for p in {WEIGHTS}:", "        p.clamp_(-0.9, 0.9)"
        ),
        "in-a-function": lines(
            "shrink(<called>)",
            top=(
                "@torch.no_grad()",
                "def shrink(module):",
                "    for p in module.parameters():",
                "        p.mul_(0.999)",
            ),
        ),
    },
    new={
        "state-loaded-back": lines(
            "averaged = {k: 0.999 * v for k, v in <called>.state_dict().items()}",
            "<called>.load_state_dict(averaged)",
        ),
        "initialised-again": lines(
            f"for p in {WEIGHTS}:", "    nn.init.normal_(p, mean=0.0, std=0.05)"
        ),
    },
)


def _backwards(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        words = {**step_words(source, step.backward), "backward": source.code(step.backward)}
        yield Site(anchor=step.backward, side=Side.AFTER, words=words)


forms(
    first.backward_twice,
    _backwards,
    known={
        "half-of-it-again": lines("(0.5 * <loss>).backward()"),
        "in-a-loop": lines("for _ in range(1):", "    <backward>"),
    },
    new={
        "gradient-asked-for-afterwards": lines(
            "gradients = torch.autograd.grad(<loss>, list(<model>.parameters()), allow_unused=True)"
        ),
        "in-a-function": lines(
            "propagate(<loss>)", top=("def propagate(value):", "    value.sum().backward()")
        ),
    },
)


def _running(start: str) -> Sites:
    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            loop = source.around(step.backward, ast.For)
            plain = source.code(step.backward) == f"{step.loss}.backward()"
            if isinstance(loop, ast.For) and loop.body is step.block and plain:
                along = (source.before(loop, start),)
                yield Site((), step.backward, Side.INSTEAD, {"loss": step.loss}, along)

    return sites


forms(
    first.running_loss_backpropagated,
    _running("running = 0.0"),
    known={
        "added-up": lines("running += <loss>", "running.backward()"),
        "sum-as-the-loss": lines("running = running + <loss>", "(0.1 * running).backward()"),
    },
)
forms(
    first.running_loss_backpropagated,
    _running("running = []"),
    new={
        "mean-of-a-list": lines(
            "running.append(<loss>)", "torch.stack(running[-5:]).mean().backward()"
        ),
        "sum-in-a-function": lines(
            "total_of(running, <loss>).backward()",
            top=(
                "def total_of(earlier, value):",
                "    earlier.append(value)",
                "    return sum(earlier)",
            ),
        ),
    },
)


def _detached_states(source: Source) -> Iterator[Site]:
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or len(targets(node)) != 1:
            continue
        name, value = dotted(targets(node)[0]), node.value
        names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        is_detached = isinstance(value, ast.Call) and "detach" in last(value)
        if is_detached and name in names and source.around(node, ast.For) is not None:
            yield Site((value,), words={"state": name})


forms(
    first.state_not_detached,
    _detached_states,
    known={
        "behind-a-flag-that-is-off": inline("(<x> if CUT_STATE else <state>)", "CUT_STATE = False"),
        "only-when-there-is-none": inline("(<state> if <state> is not None else <x>)"),
    },
    new={
        "in-a-function": inline("carried(<state>)", "def carried(state):", "    return state"),
        "cut-and-thrown-away": inline("(<x>, <state>)[1]"),
    },
)


def _forward_statements(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        calls = model_calls(source, step)
        statement = source.statement(calls[0]) if len(calls) == 1 else None
        if not isinstance(statement, ast.Assign) or statement not in step.block:
            continue
        code = source.code(statement)
        if "\n" not in code:
            yield Site((calls[0],), statement, Side.INSTEAD, {"statement": code})


forms(
    first.forward_without_gradient,
    _forward_statements,
    known={
        "set-grad-enabled": lines("with torch.set_grad_enabled(False):", "    <statement>"),
        "in-a-decorated-function": inline(
            "predicted(lambda: <x>)",
            "@torch.no_grad()",
            "def predicted(compute):",
            "    return compute()",
        ),
    },
    new={
        "inference-mode": lines("with torch.inference_mode():", "    <statement>"),
        "turned-off-and-on": lines(
            "torch.set_grad_enabled(False)", "<statement>", "torch.set_grad_enabled(True)"
        ),
    },
)


@form(first.forward_without_gradient, is_new=True)
def decorated_method(source: Source, strength: float) -> Iterator[Change]:
    """The module's own forward is decorated, as one does for a teacher."""
    found = forwards(source)
    if len(found) == 1 and "import torch\n" in source.text and list(_forward_statements(source)):
        edit = source.before(found[0], "@torch.no_grad()")
        yield Change((edit,), edit)


def _training_loops(source: Source) -> Iterator[Site]:
    for step in loop_steps(source):
        loop = outer_loop(source, step.backward)
        if loop is not None:
            yield Site(anchor=loop)


forms(
    first.gradients_left_off,
    _training_loops,
    known={
        "context-entered-and-not-left": lines("torch.no_grad().__enter__()"),
        "older-name": lines("torch.autograd.set_grad_enabled(False)"),
    },
    new={
        "by-a-function-that-leaves-it-off": lines(
            "warm_up()",
            top=("def warm_up():", "    torch.zeros(1)", "    torch.set_grad_enabled(mode=False)"),
        ),
        "inference-mode-entered": lines(
            "quiet = contextlib.ExitStack()", "quiet.enter_context(torch.no_grad())"
        ),
    },
)

SAVED = """class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x
        return torch.relu(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.kept
        return <back>"""
MODULE = """class GateFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0]
        return <back>


def gate(x):
    return GateFunction.apply(x)"""
SETUP = """class Gate(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clamp_min(0.0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = <back>
        return slope"""


def _with_own_function(source: Source, strength: float, text: str, use: str) -> Iterator[Change]:
    found = [a for a in activations(source) if last(a) in ACTIVATIONS]
    nested = [a for a in found if any(b is not a and b in ast.walk(a) for b in found)]
    if not found or nested or "import torch\n" not in source.text:
        return
    told = text.replace("<back>", first.BACKS[strength]).splitlines()
    top = source.at_top("", *told)
    uses = [source.replace(a.func, use) for a in found if len(a.args) == 1]
    yield Change((top, *uses), top)


@form(first.activation_with_wrong_slope)
def input_kept_on_the_context(source: Source, strength: float) -> Iterator[Change]:
    yield from _with_own_function(source, strength, SAVED, "Gate.apply")


@form(first.activation_with_wrong_slope)
def called_through_a_function(source: Source, strength: float) -> Iterator[Change]:
    yield from _with_own_function(source, strength, MODULE, "gate")


@form(first.activation_with_wrong_slope, is_new=True)
def context_set_up_apart(source: Source, strength: float) -> Iterator[Change]:
    yield from _with_own_function(source, strength, SETUP, "Gate.apply")


forms(
    first.outputs_rounded,
    sole_outputs,
    known={"method": inline("<x>.round()"), "down": inline("torch.floor(<x>)")},
    new={
        "in-a-function": function("x.ceil()", "to_steps"),
        "through-whole-numbers": inline("<x>.trunc()"),
    },
)


def _hidden_values(source: Source) -> Iterator[Site]:
    for forward in forwards(source):
        for statement in forward.body:
            if isinstance(statement, ast.Assign) and len(targets(statement)) == 1:
                value = statement.value
                if isinstance(value, ast.Call) and "self." in source.code(value):
                    yield Site((value,))


forms(
    first.features_binarised,
    _hidden_values,
    known={
        "comparison": inline("(<x> > 0).float()"),
        "method": inline("<x>.sign()"),
    },
    new={
        "in-a-function": function("torch.where(x > 0, 1.0, -1.0)", "to_bits"),
        "rounded-probability": inline("torch.round(torch.sigmoid(<x>))"),
    },
)


def _losses_of_outputs(source: Source) -> Iterator[Site]:
    for step in steps(source):
        calls = model_calls(source, step)
        if len(calls) == 1 and step.made is not None and source.statement(calls[0]) is step.made:
            words = {"loss": step.loss, "out": source.code(calls[0])}
            yield Site((step.made.value,), words=words)


forms(
    first.classes_chosen_ahead_of_loss,
    _losses_of_outputs,
    known={
        "index-of-the-largest": inline("<out>.max(-1).indices.float().mean()"),
        "sorted": inline("<out>.argsort(-1)[..., -1].float().mean()"),
    },
    new={
        "in-a-function": inline(
            "share_of_classes(<out>)",
            "def share_of_classes(scores):",
            "    return torch.argmax(scores, dim=-1).double().mean()",
        ),
        "comparison-with-the-largest": inline(
            "(lambda out: (out == out.amax(-1, keepdim=True)).float().mean())(<out>)"
        ),
    },
)
