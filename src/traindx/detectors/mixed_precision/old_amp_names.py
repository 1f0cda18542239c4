"""Mixed precision through names that torch has deprecated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module
from traindx.source.patches import Edit, diff, replacing

OLD = {
    f"torch.{device}.amp.{place}{name}": (device, name)
    for device in ("cuda", "cpu")
    for name, place in (
        ("autocast", ""),
        ("autocast", "autocast_mode."),
        ("GradScaler", ""),
        ("GradScaler", "grad_scaler."),
    )
}


@detector(needs=("source",), suggests=("deprecated-amp-api",))
def check(run: Run) -> Iterator[Finding]:
    """Mixed precision is used through `torch.cuda.amp`, which is deprecated.

    ## What it detects
    Calls of `torch.cuda.amp.autocast`, `torch.cuda.amp.GradScaler` and their CPU kin.

    ## Why it matters
    They warn on every use and will be removed; the current names take the device as an argument.

    ## What to do
    Use `torch.amp.autocast("cuda", …)` and `torch.amp.GradScaler("cuda", …)`.

    ## When it is wrong
    Code that has to run on torch before 2.4 still needs the old names; a choice between the two by
    version or by `try` is left alone.
    """
    for module in project_of(run).training_modules:
        uses = [(c, *OLD[n]) for c, n in module.calls() if n in OLD and not _is_choice(module, c)]
        if not uses:
            continue
        first, device, name = uses[0]
        count = f" ({len(uses)} uses)" if len(uses) > 1 else ""
        yield Finding(
            claim=f"`torch.{device}.amp.{name}` is deprecated in favour of "
            f'`torch.amp.{name}("{device}")`{count}',
            strength=Strength.STRONG,
            evidence=tuple(module.cite(c, f"old name of {n}") for c, _, n in uses[:5]),
            shows="deprecated-amp-api",
            location=module.location(first),
            patch=_patch(module, uses),
        )


def _is_choice(module: Module, call: ast.Call) -> bool:
    """Tell whether the old name is only the fallback: in a `try`, or by version."""
    for node in module.enclosing(call):
        if isinstance(node, (ast.Try, ast.ExceptHandler)):
            return True
        if isinstance(node, (ast.If, ast.IfExp)):
            text = ast.unparse(node.test).lower()
            if "version" in text or "hasattr" in text or "torch_" in text:
                return True
    return False


def _patch(module: Module, uses: list[tuple[ast.Call, str, str]]) -> str | None:
    edits = []
    for call, device, name in uses:
        first = call.args[0] if call.args else None
        keyword = "enabled=" if name == "autocast" and first is not None else ""
        if len(call.args) > 1 and name == "autocast":
            return None
        line, column = call.func.end_lineno or call.lineno, (call.func.end_col_offset or 0) + 1
        has_more = bool(call.args or call.keywords)
        text = f'"{device}"' + (", " if has_more else "") + keyword
        edits.append(Edit(line, column, line, column, text))
        if isinstance(call.func, ast.Attribute):
            edits.append(replacing(call.func, f"torch.amp.{name}"))
    changed = _imports(module)
    if changed is None or (module.aliases.get("torch") != "torch" and not changed):
        return None
    return diff(module, *edits, *changed)


def _imports(module: Module) -> list[Edit] | None:
    """The imports renamed; None where one of them brings in something else as well."""
    edits = []
    for node in module.nodes(ast.ImportFrom):
        if node.module in ("torch.cuda.amp", "torch.cpu.amp"):
            names = [a.name for a in node.names]
            if set(names) - {"autocast", "GradScaler"} or any(a.asname for a in node.names):
                return None
            edits.append(replacing(node, f"from torch.amp import {', '.join(names)}"))
    return edits


_LOOP = """
import torch
{imports}

scaler = {scaler}
for data, target in loader:
    with {context}:
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def _loop(scaler: str, context: str, imports: str = "") -> Run:
    text = _LOOP.format(scaler=scaler, context=context, imports=imports)
    return make_run(sources={"train.py": text})


_CHOICE = """
import torch

if torch.__version__ < "2.4":
    scaler = torch.cuda.amp.GradScaler()
else:
    scaler = torch.amp.GradScaler("cuda")
"""

FIRES = {
    "old names": _loop("torch.cuda.amp.GradScaler()", "torch.cuda.amp.autocast(enabled=True)"),
    "imported names": _loop(
        "GradScaler()", "autocast()", "from torch.cuda.amp import GradScaler, autocast"
    ),
}

SILENT = {
    "current names": _loop('torch.amp.GradScaler("cuda")', 'torch.autocast("cuda")'),
    "near miss: chosen by version": make_run(sources={"train.py": _CHOICE}),
}
