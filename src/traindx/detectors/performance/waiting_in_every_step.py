"""A training step makes the host wait for the device again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of

FORCED = {"torch.cuda.empty_cache": "empties the cache", "torch.cuda.synchronize": "waits",
          "gc.collect": "collects garbage"}  # fmt: skip
READS = frozenset({"item", "cpu", "numpy", "tolist"})
MANY = 3  # one read per step for the running loss is what everybody does


@detector(needs=("source",), suggests=("synchronisation-in-loop",))
def check(run: Run) -> Iterator[Finding]:
    """Every training step waits for the device, several times or by force.

    ## What it detects
    In the loop over batches, without a condition: `torch.cuda.empty_cache()` or `synchronize()`, or
    three and more values read back with `.item()`, `.cpu()` or `.numpy()`, in code for CUDA.

    ## Why it matters
    The host may run ahead of the device and hide its own work. Every read waits until the device
    has caught up; emptying the cache also makes every allocation slow again.

    ## What to do
    Read back every n steps, keep running sums on the device, and leave the cache alone.

    ## When it is wrong
    Large models hide it: with steps of a second a few waits cost nothing. Hence a weak remark.
    """
    for loop in training_loops(project_of(run)):
        backward = loop.first(Do.BACKWARD)
        if backward is None or "cuda" not in backward.module.text:
            continue
        module, inner = backward.module, backward.loops[-1]
        if inner not in module.enclosing(backward.node):
            continue
        waits = list(_unconditional_calls(module, inner))
        forced = [(c, FORCED[n]) for c in waits if (n := module.qualified(c.func) or "") in FORCED]
        reads = [c for c in waits if _is_read(c)]
        if forced:
            node, what = forced[0]
            yield _finding(module, node, f"Every training step {what} of the device")
        elif len(reads) >= MANY:
            claim = f"Every training step reads {len(reads)} values back from the device"
            yield _finding(module, reads[0], claim)


def _finding(module: Module, node: ast.AST, claim: str) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.WEAK,
        evidence=(module.cite(node, f"`{ast.unparse(node)}` runs in every step"),),
        suggests={"synchronisation-in-loop": Strength.WEAK},
        location=module.location(node),
    )


def _unconditional_calls(module: Module, inner: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(inner):
        if isinstance(node, ast.Call):
            above = list(module.enclosing(node))
            between = above[: above.index(inner)]
            if not any(isinstance(n, (ast.If, ast.For, ast.While, ast.IfExp)) for n in between):
                yield node


def _is_read(call: ast.Call) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in READS or call.args:
        return False
    inner = func.value
    is_chain = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
    return not (is_chain and isinstance(inner, ast.Call) and key_of(inner.func) is None)


_LOOP = """
import torch

model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (data, target) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    loss.backward()
    optimizer.step()
    {more}
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=more)})


_THREE = "a = loss.item(); b = norm.item(); c = accuracy.item()"

FIRES = {"the cache is emptied": _loop("torch.cuda.empty_cache()"), "three reads": _loop(_THREE)}

SILENT = {
    "near miss: one read": _loop("total += loss.item()"),
    "near miss: every hundred steps": _loop(f"if i % 100 == 0:\n        {_THREE}"),
}
