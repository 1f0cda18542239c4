"""The losses that training code computes: what each wants, and what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.source.acts import Act, Do, acts_of
from traindx.source.module import Function, Module
from traindx.source.project import Project

WANTS = {
    "CrossEntropyLoss": "logits", "cross_entropy": "logits",
    "BCEWithLogitsLoss": "binary-logits", "binary_cross_entropy_with_logits": "binary-logits",
    "BCELoss": "probabilities", "binary_cross_entropy": "probabilities",
    "NLLLoss": "log-probabilities", "nll_loss": "log-probabilities",
    "KLDivLoss": "logarithms", "kl_div": "logarithms",
    "MSELoss": "same-shape", "mse_loss": "same-shape", "L1Loss": "same-shape",
    "l1_loss": "same-shape", "SmoothL1Loss": "same-shape", "smooth_l1_loss": "same-shape",
    "HuberLoss": "same-shape", "huber_loss": "same-shape",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class LossCall:
    """One computation of a loss."""

    act: Act
    name: str
    call: ast.Call

    @property
    def module(self) -> Module:
        return self.act.module

    @property
    def line(self) -> int:
        return self.act.line

    @property
    def scope(self) -> ast.AST:
        return self.act.function or self.act.module.tree

    @property
    def label(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    @property
    def input(self) -> ast.expr | None:
        return self._argument(0, "input")

    @property
    def target(self) -> ast.expr | None:
        return self._argument(1, "target")

    def _argument(self, position: int, name: str) -> ast.expr | None:
        named = next((k.value for k in self.call.keywords if k.arg == name), None)
        if named is None and position < len(self.call.args):
            named = self.call.args[position]
        return None if isinstance(named, ast.Starred) else named


def wants(loss: LossCall) -> str:
    """Return what a loss takes as its input: logits, probabilities …; empty where unknown."""
    return WANTS.get(loss.label, "")


def losses_in(project: Project) -> Iterator[LossCall]:
    """Yield every loss that the project computes with a loss of torch's own, each once."""
    seen: set[ast.AST] = set()
    for module in project.training_modules:
        scopes: list[ast.Module | Function] = [module.tree, *module.functions.values()]
        for scope in scopes:
            for act in acts_of(project, module, scope):
                if act.do is not Do.LOSS or act.node in seen:
                    continue
                seen.add(act.node)
                if isinstance(act.node, ast.Call):
                    yield LossCall(act, act.value.made_by or act.target, act.node)
