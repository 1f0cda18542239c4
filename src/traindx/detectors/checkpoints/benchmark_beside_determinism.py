"""A deterministic run lets cuDNN choose its algorithms by timing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module
from traindx.source.patches import diff, replacing


@detector(needs=("source",), suggests=("nondeterministic-operation",))
def check(run: Run) -> Iterator[Finding]:
    """`cudnn.benchmark` is on where determinism is asked for.

    ## What it detects
    `cudnn.benchmark = True` and `cudnn.deterministic = True` (or `use_deterministic_algorithms`)
    in one scope.

    ## Why it matters
    The benchmark picks the fastest algorithm by measuring, so two runs may compute with different
    ones and differ in the last bits, then in everything.

    ## What to do
    `torch.backends.cudnn.benchmark = False` where results have to repeat.

    ## When it is wrong
    On one machine with fixed shapes the choice is often the same; hence a weak remark.
    """
    for module in project_of(run).training_modules:
        on = [n for n in module.nodes(ast.Assign) if _sets(module, n, "benchmark")]
        asked = [n for n in module.nodes(ast.Assign) if _sets(module, n, "deterministic")]
        scopes = {module.function_of(n) for n in asked} | {
            module.function_of(c)
            for c, n in module.calls()
            if n == "torch.use_deterministic_algorithms"
            and c.args
            and getattr(c.args[0], "value", None) is True
        }
        for node in on:
            if module.function_of(node) in scopes:
                yield Finding(
                    claim="The cuDNN benchmark is on where determinism is asked for",
                    strength=Strength.WEAK,
                    evidence=(module.cite(node, f"`{ast.unparse(node)}`"),),
                    suggests={"nondeterministic-operation": Strength.WEAK},
                    location=module.location(node),
                    patch=diff(module, replacing(node.value, "False")),
                )


def _sets(module: Module, node: ast.Assign, attribute: str) -> bool:
    name = module.qualified(node.targets[0]) or ""
    is_on = isinstance(node.value, ast.Constant) and node.value.value is True
    return is_on and name.endswith(f"cudnn.{attribute}") and not _is_branch(module, node)


def _is_branch(module: Module, node: ast.AST) -> bool:
    return any(isinstance(n, ast.If) for n in module.enclosing(node))


def _program(*lines: str) -> Run:
    return make_run(sources={"train.py": "\n".join(["import torch", *lines, ""])})


_ON = "torch.backends.cudnn.benchmark = True"
_ASKED = "torch.backends.cudnn.deterministic = True"

FIRES = {"both": _program(_ASKED, _ON)}

SILENT = {
    "speed only": _program(_ON),
    "near miss: the benchmark is off": _program(_ASKED, "torch.backends.cudnn.benchmark = False"),
    "near miss: one or the other": _program(
        "if deterministic:", f"    {_ASKED}", "else:", f"    {_ON}"
    ),
}
