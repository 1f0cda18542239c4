"""A running total or list keeps every step's loss, and with it every step's graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, replacing

NO_GRAPH = ("no_grad", "inference_mode")
CUTS = frozenset({"item", "detach", "data", "tolist", "numpy"})


@detector(needs=("source",), suggests=("graph-kept-alive",))
def check(run: Run) -> Iterator[Finding]:
    """A running total or list keeps the loss tensor of every step.

    ## What it detects
    `total += loss` or `losses.append(loss)` in a training loop, where `loss` is the very tensor
    that `backward` is called on and the total outlives the step.

    ## Why it matters
    The tensor holds on to the graph that made it. Memory grows with every step until the device
    runs out, usually some hundred steps into an epoch that started well.

    ## What to do
    Keep the number: `total += loss.item()`, or `loss.detach()` where a tensor is wanted.

    ## When it is wrong
    A sum that backward is called on later has to keep its graph; totals that feed a loss are left
    alone, and so are those kept under `no_grad`, those of a loss that is detached in place before,
    and queues of a fixed length.
    """
    for loop in training_loops(project_of(run)):
        for backward in loop.does(Do.BACKWARD):
            name, inner = _loss_name(backward), backward.loops[-1]
            if not name or not _is_own_loop(loop, backward) or _is_cut(backward, name):
                continue
            for node, kept, use in _kept(inner, name):
                if _feeds_backward(loop, backward, kept) or _is_made_within(inner, kept):
                    continue
                if _is_without_graph(backward.module, node) or _is_short(backward.module, kept):
                    continue
                if _is_detached(inner, name, node, kept):
                    continue
                yield _finding(backward.module, node, kept, use)
            break


def _loss_name(backward: Act) -> str:
    """The name of the loss, also inside `scaler.scale(loss)` and `(loss / n)`."""
    subject = backward.subject
    if isinstance(subject, ast.BinOp) and isinstance(subject.op, (ast.Mult, ast.Div)):
        return key_of(subject.left) or key_of(subject.right) or ""
    if isinstance(subject, ast.Call) and len(subject.args) == 1:
        return key_of(subject.args[0]) or ""
    return backward.target


def _finding(module: Module, node: ast.stmt, kept: str, use: ast.expr) -> Finding:
    name = module.source(use)
    how = "detach" if _is_used_as_tensor(module, node, kept) else "item"
    return Finding(
        claim=f"`{kept}` keeps `{name}` of every step, and with it the step's graph",
        strength=Strength.STRONG,
        evidence=(module.cite(node, f"{name} is kept with its graph here"),),
        shows="graph-kept-alive",
        is_symptom=True,
        location=module.location(node),
        patch=diff(module, replacing(use, f"{name}.{how}()")),
    )


def _is_own_loop(loop: TrainingLoop, backward: Act) -> bool:
    """Tell whether backward stands in the text of its loop, so that names mean the same."""
    return backward.loops[-1] in backward.module.enclosing(backward.node)


def _kept(inner: ast.AST, name: str) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """The statements that keep the tensor, what they keep it in, and its use there."""
    for node in ast.walk(inner):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            kept, use = key_of(node.target), _use(node.value, name)
            if kept and kept != name and use is not None:
                yield node, kept, use
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func, args = node.value.func, node.value.args
            if isinstance(func, ast.Attribute) and func.attr == "append" and len(args) == 1:
                kept, use = key_of(func.value), _use(args[0], name)
                if kept and use is not None:
                    yield node, kept, use


def _use(value: ast.expr, name: str) -> ast.expr | None:
    """The loss in `loss`, `loss * n`, `loss / n`; nothing where it goes through a call."""
    if key_of(value) == name and not isinstance(value, ast.Subscript):
        return value
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        return _use(value.left, name) or _use(value.right, name)
    return None


def _is_cut(backward: Act, name: str) -> bool:
    """Tell whether the loop rebinds the name to a plain value, as `loss = loss.item()` does.

    What a call makes of the loss after `backward`, as `loss = reduce(loss)`, may be such too.
    """
    for node in ast.walk(backward.loops[-1]):
        if isinstance(node, ast.Assign) and any(key_of(t) == name for t in node.targets):
            attributes = (n.attr for n in ast.walk(node.value) if isinstance(n, ast.Attribute))
            if CUTS & set(attributes):
                return True
            given = node.value.args if isinstance(node.value, ast.Call) else []
            if node.lineno > backward.line and any(key_of(a) == name for a in given):
                return True
    return False


def _is_detached(inner: ast.AST, name: str, node: ast.stmt, kept: str) -> bool:
    """Tell whether the loss is detached in place before it is kept, or what it is kept in."""
    for call in (n for n in ast.walk(inner) if isinstance(n, ast.Call)):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "detach_":
            # a list holds the very tensor; a sum holds the graph that the tensor had then
            is_before = call.lineno <= node.lineno or isinstance(node, ast.Expr)
            if key_of(func.value) == kept or (key_of(func.value) == name and is_before):
                return True
    return False


def _is_short(module: Module, kept: str) -> bool:
    """Tell whether it is a queue that forgets: `deque(maxlen=100)`."""
    bound = (n for n in module.nodes(ast.Assign) if any(key_of(t) == kept for t in n.targets))
    made = (n.value for n in bound if isinstance(n.value, ast.Call))
    return any(k.arg == "maxlen" for call in made for k in call.keywords)


def _feeds_backward(loop: TrainingLoop, backward: Act, kept: str) -> bool:
    scope = backward.function or backward.module.tree
    feeding = {_loss_name(a) for a in loop.does(Do.BACKWARD)}
    subjects = [a.subject for a in loop.does(Do.BACKWARD) if a.subject is not None]
    feeding |= {k for s in subjects for n in ast.walk(s) if (k := key_of(n))}
    assigns = [n for n in ast.walk(scope) if isinstance(n, ast.Assign)]
    for _ in range(3):
        for node in assigns:
            if any(key_of(t) in feeding for t in node.targets):
                feeding |= {k for n in ast.walk(node.value) if (k := key_of(n))}
    return kept in feeding


def _is_made_within(inner: ast.AST, kept: str) -> bool:
    """Tell whether the total starts anew in every iteration."""
    for node in getattr(inner, "body", []):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(key_of(t) == kept for t in targets):
                return True
    return False


def _is_without_graph(module: Module, node: ast.AST) -> bool:
    around = (n for n in module.enclosing(node) if isinstance(n, ast.With))
    text = " ".join(ast.unparse(i.context_expr) for n in around for i in n.items)
    return any(word in text for word in NO_GRAPH)


def _is_used_as_tensor(module: Module, node: ast.AST, kept: str) -> bool:
    scope: ast.AST = module.function_of(node) or module.tree
    uses = (n for n in ast.walk(scope) if isinstance(n, (ast.Attribute, ast.Call)))
    for use in uses:
        if isinstance(use, ast.Attribute) and key_of(use.value) == kept and use.attr != "append":
            return True
        is_call = isinstance(use, ast.Call) and any(key_of(a) == kept for a in use.args)
        if is_call and (module.qualified(getattr(use, "func", use)) or "").startswith("torch."):
            return True
    return False


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(10):
    total = 0
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        {kept}
    print(total / len(loader))
"""


def _loop(kept: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(kept=kept)})


_SUM = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, targets in loader:
    optimizer.zero_grad()
    total = 0
    for head, target in zip(heads, targets):
        loss = criterion(head(data), target)
        total += loss
    total.backward()
    optimizer.step()
"""

_SCALED = _LOOP.replace("loss.backward()", "scaler.scale(loss).backward()")

_DIVIDED = _LOOP.replace("loss.backward()", "(loss / 4).backward()")

FIRES = {
    "detached only after": _loop("total += loss\n        loss.detach_()"),
    "a part of an accumulation": make_run(
        sources={"train.py": _DIVIDED.format(kept="losses.append(loss)")}
    ),
    "a scaled loss": make_run(sources={"train.py": _SCALED.format(kept="total += loss")}),
    "a running total": _loop("total += loss"),
    "a weighted total": _loop("total += loss * data.size(0)"),
    "a list of losses": _loop("losses.append(loss)"),
}

SILENT = {
    "the number is kept": _loop("total += loss.item()"),
    "near miss: a part of an accumulation as a number": make_run(
        sources={"train.py": _DIVIDED.format(kept="total += loss.item() / 4")}
    ),
    "near miss: detached in place": _loop("loss.detach_()\n        total += loss"),
    "near miss: reduced over the ranks": _loop("loss = mean_of_ranks(loss); total += loss"),
    "near miss: a queue of a fixed length": make_run(
        sources={
            "train.py": _LOOP.format(kept="losses.append(loss)").replace("[]", "deque(maxlen=9)")
        }
    ),
    "near miss: detached": _loop("losses.append(loss.detach())"),
    "near miss: a sum over heads that is trained": make_run(sources={"train.py": _SUM}),
    "float": _loop("total += float(loss)"),
}
