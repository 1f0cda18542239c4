"""A generator whose adversarial loss does not reach it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, key_of
from traindx.source.patches import diff, replacing

# a name that speaks of the generator's loss: g_loss, loss_G, errG, gen_loss, G_loss1
OWN = re.compile(
    r"^(?:g|gen|generator)_?(?:adv_?)?(?:loss|err|cost)|(?:loss|err|cost)_?(?:g|gen|generator)\d*$",
    re.IGNORECASE,
)
REAL = re.compile(r"\bones(?:_like)?\(|real|valid|\b1\.0?\)", re.IGNORECASE)


@detector(needs=("source",), suggests=("detached-loss",))
def check(run: Run) -> Iterator[Finding]:
    """The discriminator judges a detached sample for the loss of the generator.

    ## What it detects
    In one function: a sample that is detached, handed to a network, and the verdict compared with
    the label of real data (or negated) in a loss that is named for the generator.

    ## Why it matters
    `detach` belongs into the discriminator's turn. In the generator's it cuts the only path by
    which the verdict could teach it: the adversarial term has no gradient, the generator follows
    its other terms or nothing, and the discriminator wins.

    ## What to do
    Give the discriminator the sample itself when the generator is trained.

    ## When it is wrong
    Losses of other names are not looked at, and neither are verdicts against the label of fakes.
    """
    for module in project_of(run).training_modules:
        for function in module.functions.values():
            for cut, loss in _cut_losses(function):
                yield Finding(
                    claim=f"`{loss}` does not reach the generator: its sample is detached",
                    strength=Strength.STRONG,
                    evidence=(module.cite(cut, f"`{ast.unparse(cut)}` has no history"),),
                    shows="detached-loss",
                    is_symptom=True,
                    location=module.location(cut),
                    patch=_patch(module, cut),
                )


def _cut_losses(function: Function) -> Iterator[tuple[ast.Call, str]]:
    """The detached samples with the losses of the generator that hang on them."""
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and len(n.targets) == 1]
    made: dict[str, list[ast.expr]] = {}
    for node in assigned:
        made.setdefault(key_of(node.targets[0]) or "", []).append(node.value)
    for node in assigned:
        name = key_of(node.targets[0]) or ""
        if not OWN.search(name.rsplit(".", 1)[-1]):
            continue
        for verdict in _verdicts(node.value, made):
            cut = _detached(verdict)
            if cut is not None:
                yield cut, name


def _verdicts(loss: ast.expr, made: dict[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """What a loss holds against the label of real data, or negates; by name or at once."""
    for node in ast.walk(loss):
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and len(node.args) >= 2 and REAL.search(_text(node.args[1])):
            given = [node.args[0]]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            given = [n for n in ast.walk(node.operand) if isinstance(n, (ast.Name, ast.Call))]
        for value in given:
            known = made.get(key_of(value) or "", [])
            yield from known if len(known) == 1 else [value]


def _detached(verdict: ast.expr) -> ast.Call | None:
    """The first argument of a call, where it is `x.detach()`."""
    first = verdict.args[0] if isinstance(verdict, ast.Call) and verdict.args else None
    func = first.func if isinstance(first, ast.Call) else None
    is_cut = isinstance(func, ast.Attribute) and func.attr == "detach"
    return first if is_cut and isinstance(first, ast.Call) else None


def _text(node: ast.expr) -> str:
    return ast.unparse(node)


def _patch(module: Module, cut: ast.Call) -> str | None:
    owner = cut.func.value if isinstance(cut.func, ast.Attribute) else None
    return None if owner is None else diff(module, replacing(cut, module.source(owner)))


_TURNS = """
import torch
import torch.nn.functional as F

def train_step(G, D, real, noise, opt_g, opt_d):
    fake = G(noise)
    d_loss = F.mse_loss(D(real), torch.ones(8, 1)) + F.mse_loss(D(fake.detach()), torch.zeros(8, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    verdict = D({sample})
    {loss}
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
"""


def _turns(sample: str, loss: str = "g_loss = F.mse_loss(verdict, torch.ones(8, 1))") -> Run:
    return make_run(sources={"train.py": _TURNS.format(sample=sample, loss=loss)})


FIRES = {
    "against the label of real data": _turns("fake.detach()"),
    "negated": _turns("fake.detach()", "g_loss = -verdict.mean()"),
}

SILENT = {
    "the sample itself": _turns("fake"),
    "near miss: detached in the discriminator's turn": _turns("fake", "g_loss = -verdict.mean()"),
    "near miss: detached and only shown": _turns(
        "fake.detach()", "g_loss = -D(fake).mean(); print(verdict)"
    ),
}
