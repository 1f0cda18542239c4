"""A custom autograd function whose backward does not fit its forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module
from traindx.source.project import Project

BASES = ("torch.autograd.Function", "torch.autograd.function.Function", "autograd.Function")


@detector(needs=("source",), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Iterator[Finding]:
    """A custom autograd function returns too few gradients, or reads what was not saved.

    ## What it detects
    A `torch.autograd.Function` whose `backward` returns fewer values than `forward` has inputs (or
    more, and not None), and one whose `backward` reads `ctx.saved_tensors` that nothing saved.

    ## Why it matters
    Backward raises, or a gradient goes to the wrong input.

    ## What to do
    Return one value per input of `forward`, in order, None where there is no gradient.

    ## When it is wrong
    Inputs with defaults may be left out by the caller and are counted generously; tuples built
    elsewhere are not counted.
    """
    project = project_of(run)
    for module in project.modules:
        for cls in module.nodes(ast.ClassDef):
            if any(module.qualified(b) in BASES for b in cls.bases):
                yield from _faults(project, module, cls)


def _faults(project: Project, module: Module, cls: ast.ClassDef) -> Iterator[Finding]:
    methods = {n.name: n for n in cls.body if isinstance(n, ast.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None:
        return
    for returned, got in _counted_returns(backward):
        fault = _miscount(forward, got, returned, has_context="setup_context" not in methods)
        if fault is not None:
            yield _finding(module, returned, forward, f"`{cls.name}.backward` {fault}")
            break
    reads = _reads_saved(backward)
    saving = " ".join(ast.unparse(m) for n, m in methods.items() if n != "backward")
    others = [m for n, m in methods.items() if n != "backward"]
    is_saved = "save_for_backward" in saving or _hands_context_on(others)
    if reads is not None and not is_saved and len(cls.bases) == 1:
        what = f"`{cls.name}.backward` reads saved tensors, and forward saves none"
        yield _finding(module, reads, forward, what)


def _finding(module: Module, node: ast.AST, forward: Function, claim: str) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(
            module.cite(node, "here"),
            module.cite(forward, "the inputs of forward are listed here"),
        ),
        shows="incorrect-custom-backward",
        is_symptom=True,
        location=module.location(node),
    )


def _counted_returns(backward: Function) -> Iterator[tuple[ast.Return, list[ast.expr]]]:
    functions = (n for n in ast.walk(backward) if isinstance(n, (ast.FunctionDef, ast.Lambda)))
    inner = {n for f in functions if f is not backward for n in ast.walk(f)}
    for node in ast.walk(backward):
        if not isinstance(node, ast.Return) or node in inner:
            continue
        value = node.value
        if isinstance(value, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in value.elts):
            yield node, value.elts
        elif isinstance(value, (ast.BinOp, ast.UnaryOp)) and not _may_be_tuple(value):
            yield node, [value]


def _may_be_tuple(value: ast.expr) -> bool:
    """`(a, b) + (None,) * n` makes a tuple too."""
    return any(isinstance(n, (ast.Tuple, ast.List, ast.Call)) for n in ast.walk(value))


def _miscount(
    forward: Function, got: list[ast.expr], returned: ast.Return, *, has_context: bool
) -> str | None:
    spec = forward.args
    if spec.vararg is not None or spec.kwarg is not None:
        return None
    inputs = len(spec.posonlyargs) + len(spec.args) - int(has_context)
    needed = inputs - len(spec.defaults)
    extra = got[inputs:]
    is_surplus = any(not (isinstance(e, ast.Constant) and e.value is None) for e in extra)
    if len(got) < needed or (is_surplus and inputs > 0):
        values = "one value" if len(got) == 1 else f"{len(got)} values"
        return f"returns {values} for {inputs} inputs of forward"
    return None


def _reads_saved(backward: Function) -> ast.AST | None:
    nodes = (n for n in ast.walk(backward) if isinstance(n, ast.Attribute))
    return next((n for n in nodes if n.attr == "saved_tensors"), None)


def _hands_context_on(methods: list[ast.FunctionDef]) -> bool:
    """Tell whether a helper gets the context and may save there."""
    for method in methods:
        for node in ast.walk(method):
            if isinstance(node, ast.Call):
                given = (*node.args, *(k.value for k in node.keywords))
                if any(isinstance(a, ast.Name) and a.id == "ctx" for a in given):
                    return True
    return False


_FUNCTION = """
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, {inputs}):
        {saved}
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        {body}
"""


def _function(body: str, inputs: str = "weight", saved: str = "ctx.save_for_backward(x)") -> Run:
    text = _FUNCTION.format(body=body, inputs=inputs, saved=saved)
    return make_run(sources={"scale.py": text})


FIRES = {
    "one value for two inputs": _function("return grad * 2"),
    "three values for two inputs": _function("return grad, grad, grad"),
    "nothing was saved": _function(
        "x, = ctx.saved_tensors\n        return grad * x, None", saved="pass"
    ),
}

SILENT = {
    "one per input": _function("return grad, None"),
    "near miss: an extra None is allowed": _function("return grad, None, None"),
    "near miss: an input with a default": _function("return grad, None", "weight, power=2"),
    "a tuple from elsewhere": _function("return tuple(grads)"),
}
