"""What a model is made of, as far as its source is in sight."""

from __future__ import annotations

import ast

from traindx.source.module import Module
from traindx.source.project import Project

DROPOUTS = frozenset(
    {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout",
     "DropPath"}
)  # fmt: skip
FUNCTIONAL_DROPOUTS = frozenset(
    {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
)
BATCH_NORMS = frozenset(
    {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm1d",
     "LazyBatchNorm2d", "LazyBatchNorm3d"}
)  # fmt: skip


def layers_of(project: Project, module: Module, made: ast.Call) -> frozenset[str]:
    """Return the names of the torch layers that the call of a model's class makes, all levels."""
    home = next((m for m in (module, *project.modules) if made in m.parents), module)
    layers: set[str] = set()
    seen: set[ast.ClassDef] = set()
    pending: list[tuple[Module, ast.AST]] = [(home, made)]
    while pending:
        at, node = pending.pop()
        for call, name in at.calls(node):
            last = name.rsplit(".", 1)[-1]
            if last in FUNCTIONAL_DROPOUTS:
                layers |= {last} if _asks_for_mode(call) else set()
            elif name.startswith(("torch.nn.", "nn.")):
                layers.add(last)
            elif last[:1].isupper():
                found = project.find_class(at, name)
                if found is not None and found[1] not in seen and project.is_module(*found):
                    seen.add(found[1])
                    pending.append(found)
    return frozenset(layers)


def _asks_for_mode(call: ast.Call) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == "training" for n in ast.walk(call))


def changes_with_mode(layers: frozenset[str]) -> list[str]:
    """Return the layers that behave differently in training and evaluation."""
    return sorted(layers & (DROPOUTS | FUNCTIONAL_DROPOUTS | BATCH_NORMS))
