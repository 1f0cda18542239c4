"""What a training script is made of, found by the shape of its tree."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from bench.corpus.source import Function, Source
from bench.corpus.syntax import (
    argument,
    dotted,
    keyword,
    last,
    method_statements,
    named,
    names_in,
    targets,
)

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adadelta")
KINDS = {
    "cross_entropy": "classes",
    "CrossEntropyLoss": "classes",
    "nll_loss": "log-classes",
    "NLLLoss": "log-classes",
    "binary_cross_entropy_with_logits": "binary",
    "BCEWithLogitsLoss": "binary",
    "binary_cross_entropy": "probability",
    "BCELoss": "probability",
    "mse_loss": "values",
    "MSELoss": "values",
    "l1_loss": "values",
    "L1Loss": "values",
    "smooth_l1_loss": "values",
    "SmoothL1Loss": "values",
    "huber_loss": "values",
    "HuberLoss": "values",
}
ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu", "silu", "elu", "leaky_relu")
ACTIVATION_LAYERS = ("ReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "ELU", "LeakyReLU")
MODE_DEPENDENT = ("Dropout", "Dropout2d", "BatchNorm1d", "BatchNorm2d", "dropout")


# Optimizers


@dataclass(frozen=True)
class Optimizer:
    """An optimizer's constructor and what it is given."""

    call: ast.Call
    statement: ast.stmt
    name: str

    @property
    def parameters(self) -> ast.expr:
        return self.call.args[0] if self.call.args else self.call.keywords[0].value

    @property
    def model(self) -> str:
        """Return the name of the model whose parameters it holds, if it is that plain."""
        given = self.parameters
        is_plain = isinstance(given, ast.Call) and last(given) == "parameters"
        if is_plain and isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
            return dotted(given.func.value)
        return ""

    @property
    def rate(self) -> ast.expr | None:
        return argument(self.call, 1, "lr")


def optimizers(source: Source) -> list[Optimizer]:
    """Return the optimizers that a script makes."""
    found = []
    for call in named(source, *OPTIMIZERS):
        if not call.args and not call.keywords:
            continue
        statement = source.statement(call)
        goals = targets(statement)
        name = dotted(goals[0]) if goals else ""
        found.append(Optimizer(call, statement, name))
    return found


def is_optimizer(source: Source, text: str) -> bool:
    return bool(text) and (
        any(o.name == text for o in optimizers(source))
        or "opt" in text.rsplit(".", maxsplit=1)[-1].lower()
    )


def is_schedule(text: str) -> bool:
    return "sched" in text.lower() or text.lower().startswith("lr_")


def updates(source: Source) -> list[tuple[ast.Expr, str]]:
    """Return the statements that step an optimizer, with its name."""
    return [
        (s, owner)
        for s, call, owner in method_statements(source, "step")
        if is_optimizer(source, owner) and not is_schedule(owner) and not call.args
    ]


def clearings(source: Source) -> list[tuple[ast.Expr, str]]:
    return [(s, owner) for s, _, owner in method_statements(source, "zero_grad")]


def schedule_steps(source: Source) -> list[tuple[ast.Expr, str]]:
    return [(s, owner) for s, _, owner in method_statements(source, "step") if is_schedule(owner)]


def clips(source: Source) -> list[tuple[ast.stmt, ast.Call]]:
    found = named(source, "clip_grad_norm_", "clip_grad_value_")
    return [(source.statement(c), c) for c in found]


# The step of training


@dataclass(frozen=True)
class Step:
    """One backward pass with the block it stands in and how its loss is made."""

    backward: ast.stmt  # for Lightning: the return statement of `training_step`
    block: list[ast.stmt]
    loss: str
    made: ast.Assign | None
    is_loop: bool

    @property
    def earlier(self) -> list[ast.stmt]:
        return self.block[: self.block.index(self.backward)]


@dataclass(frozen=True)
class Loss:
    """A call that computes a loss from a prediction and a target."""

    call: ast.Call
    kind: str
    prediction: ast.expr
    target: ast.expr


def _backward_of(node: ast.AST) -> ast.expr | None:
    """Return what a statement calls backward on."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    if last(call) == "backward" and isinstance(call.func, ast.Attribute):
        return call.args[0] if call.args else call.func.value
    return call.args[0] if last(call) == "manual_backward" and call.args else None


def steps(source: Source) -> list[Step]:
    """Return the backward passes of a script, or the returns of `training_step`."""
    found = []
    for node in source.nodes:
        what = _backward_of(node)
        if what is None and isinstance(node, ast.Return) and isinstance(node.value, ast.Name):
            function = source.scope(node)
            is_step = isinstance(function, Function) and function.name == "training_step"
            what = node.value if is_step else None
        if what is None or not isinstance(node, ast.stmt):
            continue
        block = source.siblings(node)
        name = next(iter(sorted(names_in(what) & assigned(block))), "")
        made = [
            s
            for s in block[: block.index(node)]
            if isinstance(s, ast.Assign) and name in {dotted(t) for t in targets(s)}
        ]
        found.append(
            Step(node, block, name, made[-1] if made else None, isinstance(node, ast.Expr))
        )
    return [s for s in found if s.loss]


def nearest_step(source: Source, statement: ast.stmt, *, is_ahead: bool) -> Step | None:
    """Return the backward pass next to a statement of the same block, ahead of it or after."""
    found = [s for s in loop_steps(source) if statement in s.block]
    ahead = [s for s in found if s.backward.lineno < statement.lineno]
    after = [s for s in found if s.backward.lineno > statement.lineno]
    if is_ahead:
        return ahead[-1] if ahead else None
    return after[0] if after else (found[-1] if found else None)


def assigned(block: list[ast.stmt]) -> set[str]:
    return {dotted(t) for s in block for t in targets(s)}


def loop_steps(source: Source) -> list[Step]:
    """Return the backward passes that stand in a loop of the script's own."""
    return [s for s in steps(source) if s.is_loop]


def loss_kind(source: Source, call: ast.Call) -> str:
    """Return the kind of a loss call: by its function, or by what its name was made from."""
    name = last(call)
    if name in KINDS and name[0].islower():
        return KINDS[name]
    owner = dotted(call.func)
    for node in source.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = last(node.value)
            if made in KINDS and owner in {dotted(t) for t in targets(node)}:
                return KINDS[made]
    for made, kind in KINDS.items():
        # a criterion that is passed to a function keeps its name in most scripts
        if made[0].isupper() and named(source, made) and owner.split(".")[-1] in CRITERIA:
            return kind
    return ""


CRITERIA = ("criterion", "loss_fn", "loss_func", "loss_function", "crit", "objective")


def losses(source: Source, step: Step) -> list[Loss]:
    """Return the loss calls from which a step's loss is made."""
    found: list[Loss] = []
    statements = [step.made] if step.made else []
    if step.made is not None:
        used = names_in(step.made.value)
        statements += [
            s for s in step.earlier if isinstance(s, ast.Assign) and assigned([s]) & used
        ]
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and len(node.args) >= 2:
                kind = loss_kind(source, node)
                if kind and not any(f.call is node for f in found):
                    found.append(Loss(node, kind, node.args[0], node.args[1]))
    return found


def model_names(source: Source) -> list[str]:
    """Return the names that hold models: whose parameters are optimised, or that are modules."""
    found = [o.model for o in optimizers(source) if o.model]
    for call in named(source, "parameters"):
        if isinstance(call.func, ast.Attribute):
            found.append(dotted(call.func.value))
    return [n for n in dict.fromkeys(found) if n and "." not in n]


def model_calls(source: Source, step: Step) -> list[ast.Call]:
    """Return the calls of models ahead of a backward pass, in its own block."""
    models = {*model_names(source), "self", "model", "net"}
    return [
        node
        for statement in step.earlier
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and dotted(node.func) in models
        and node.args
        and not isinstance(node.args[0], ast.Starred)
    ]


def building(source: Source, name: str) -> ast.Assign | None:
    """Return the statement that makes the model of that name."""
    for node in source.nodes:
        is_made = isinstance(node, ast.Assign) and name in {dotted(t) for t in targets(node)}
        if not is_made or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if last(node.value) not in ("DDP", "prepare"):
            return node if len(targets(node)) == 1 else None
    return None


def ready_models(source: Source) -> list[tuple[ast.stmt, str]]:
    """Return where a model stands complete, ahead of its optimizer, with its name."""
    found = []
    for optimizer in optimizers(source):
        if not optimizer.model or optimizer.model == "self":
            continue
        if source.statement(optimizer.call) is optimizer.statement:
            found.append((optimizer.statement, optimizer.model))
    if not found:
        for call in named(source, "Trainer"):
            model = keyword(call, "model")
            if isinstance(model, ast.Name):
                found.append((source.statement(call), model.id))
        for _, call, owner in method_statements(source, "fit"):
            if call.args and isinstance(call.args[0], ast.Name) and owner:
                found.append((source.statement(call), call.args[0].id))
    return found


# Modules


def modules(source: Source) -> list[ast.ClassDef]:
    """Return the classes that derive from a torch module."""
    found = []
    for node in source.of_type(ast.ClassDef):
        assert isinstance(node, ast.ClassDef)
        if any(last(b).endswith("Module") for b in node.bases):
            found.append(node)
    return found


def method(klass: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    for node in klass.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


def forwards(source: Source) -> list[ast.FunctionDef]:
    return [f for m in modules(source) if (f := method(m, "forward")) is not None]


def layers(source: Source, *names: str) -> list[ast.Call]:
    """Return the constructors of layers with these names."""
    return [
        c for c in named(source, *names) if dotted(c.func).split(".")[0] in ("nn", "torch", *names)
    ]


def activations(source: Source) -> list[ast.Call]:
    """Return the activations: function calls in `forward` and layers."""
    inside = {n for f in forwards(source) for n in ast.walk(f)}
    calls = [c for c in named(source, *ACTIVATIONS) if c in inside and c.args]
    return sorted(
        [*calls, *layers(source, *ACTIVATION_LAYERS)], key=lambda c: (c.lineno, c.col_offset)
    )


# Data


def loaders(source: Source) -> list[ast.Call]:
    return named(source, "DataLoader")


def is_for_training(source: Source, call: ast.Call) -> bool:
    """Tell whether a loader or data set is the training one, by what it says of itself."""
    shuffle = keyword(call, "shuffle")
    if isinstance(shuffle, ast.Constant) and shuffle.value is True:
        return True
    statement = source.statement(call)
    scope = source.scope(call)
    text = " ".join(
        [source.code(call), *(dotted(t) for t in targets(statement)), getattr(scope, "name", "")]
    ).lower()
    if any(word in text for word in ("val", "test", "eval", "held", "dev_")):
        return False
    return "train" in text or keyword(call, "sampler") is not None


def training_loaders(source: Source) -> list[ast.Call]:
    return [c for c in loaders(source) if is_for_training(source, c)]


def other_loaders(source: Source) -> list[ast.Call]:
    return [c for c in loaders(source) if not is_for_training(source, c)]


@dataclass(frozen=True)
class Tensors:
    """The inputs and labels that a data set is made of, as names at one statement."""

    statement: ast.stmt
    inputs: str
    labels: str
    is_training: bool
    is_whole: bool  # not a slice


def tensor_sets(source: Source) -> list[Tensors]:
    """Return the data sets made from named tensors (or slices of them)."""
    found = []
    for call in source.calls():
        is_set = last(call) == "TensorDataset" or (
            last(call).endswith("Dataset") and len(call.args) == 2
        )
        if not is_set or len(call.args) != 2:
            continue
        names = [a.value if isinstance(a, ast.Subscript) else a for a in call.args]
        if all(isinstance(n, ast.Name) for n in names):
            text = source.code(source.statement(call)).split("(")[0] + source.code(call)
            is_other = any(w in text.lower() for w in ("val", "test", "eval"))
            is_whole = all(isinstance(a, ast.Name) for a in call.args)
            x, y = dotted(names[0]), dotted(names[1])
            found.append(Tensors(source.statement(call), x, y, not is_other, is_whole))
    return found


# Evaluation


def quiet_blocks(source: Source) -> list[ast.With | Function]:
    """Return the blocks and functions that run without gradients."""
    found: list[ast.With | Function] = []
    for node in source.nodes:
        if isinstance(node, ast.With):
            held = [i.context_expr for i in node.items]
        elif isinstance(node, Function):
            held = list(node.decorator_list)
        else:
            continue
        if any(last(h) in ("no_grad", "inference_mode") for h in held):
            found.append(node)
    return found


def evaluations(source: Source) -> list[ast.Call]:
    """Return the model calls of evaluations: without gradients, and compared with something."""
    models = {*model_names(source), "model", "net"}
    found = []
    for block in quiet_blocks(source):
        if not any(last(n) in JUDGING for n in ast.walk(block) if isinstance(n, ast.Call)):
            continue
        found += [
            n
            for n in ast.walk(block)
            if isinstance(n, ast.Call) and dotted(n.func) in models and n.args
        ]
    for node in source.of_type(ast.FunctionDef):
        if isinstance(node, ast.FunctionDef) and node.name in ("validation_step", "test_step"):
            calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
            found += [c for c in calls if dotted(c.func) in ("self", "self.model") and c.args]
    return sorted(dict.fromkeys(found), key=lambda c: (c.lineno, c.col_offset))


JUDGING = (*KINDS, *CRITERIA, "argmax", "squeeze", "append", "max")


def mode_calls(source: Source, mode: str) -> list[ast.Expr]:
    """Return the statements `model.train()` or `model.eval()`."""
    return [s for s, call, _ in method_statements(source, mode) if not call.args]
