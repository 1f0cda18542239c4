"""Training and validation data are normalised differently."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of, resolve
from traindx.source.module import Module, key_of, literal
from traindx.source.project import Project


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """The transforms of training and validation normalise with other numbers, or one not at all.

    ## What it detects
    Two compositions of torchvision transforms in one scope, one named for training and one for
    validation or testing, whose `Normalize` differs in its numbers or is there in training only.

    ## Why it matters
    The model sees shifted inputs in validation: a gap that no regularisation closes.

    ## What to do
    Use one `normalize = transforms.Normalize(mean, std)` in both.

    ## When it is wrong
    Numbers that are computed, and compositions that are joined from parts, are not compared.
    """
    project = project_of(run)
    for module in project.training_modules:
        found: dict[tuple[ast.AST, str], tuple[str, ast.Call]] = {}
        for node in module.nodes(ast.Assign):
            name, call = key_of(node.targets[0]) or "", node.value
            if isinstance(call, ast.Call) and _is_composition(module, call) and phase_of(name):
                scope = module.function_of(node) or module.tree
                found[scope, phase_of(name)] = (name, call)
        for (where, phase), (name, call) in found.items():
            train = found.get((where, "train"))
            if phase != "train" and train is not None:
                yield from _compare(project, module, train, (name, call))


def _compare(
    project: Project, module: Module, train: tuple[str, ast.Call], held: tuple[str, ast.Call]
) -> Iterator[Finding]:
    first, second = _normalize(project, module, train[1]), _normalize(project, module, held[1])
    if first is None or not (_is_literal(first) and (second is None or _is_literal(second))):
        return
    if second is None and not _is_whole(module, held[1]):
        return
    if second is not None and _numbers(first) == _numbers(second):
        return
    how = "does not normalise" if second is None else f"uses {ast.unparse(second)}"
    yield Finding(
        claim=f"`{train[0]}` and `{held[0]}` normalise differently: the second {how}",
        strength=Strength.STRONG,
        evidence=(
            module.cite(first, f"training: {ast.unparse(first)}"),
            module.cite(second or held[1], f"held-out data: {how}"),
        ),
        shows="preprocessing-mismatch",
        is_symptom=True,
        location=module.location(second or held[1]),
    )


def _is_composition(module: Module, call: ast.Call) -> bool:
    name = module.qualified(call.func) or ""
    return name.startswith("torchvision.transforms") and name.endswith(".Compose")


def _normalize(project: Project, module: Module, composed: ast.Call) -> ast.Call | None:
    at: ast.AST = module.function_of(composed) or module.tree
    given = composed.args[0] if composed.args else None
    for part in given.elts if isinstance(given, ast.List) else []:
        made = resolve(project, module, at, part)
        name = module.qualified(made.func) if isinstance(made, ast.Call) else None
        if isinstance(made, ast.Call) and (name or "").endswith(".Normalize"):
            return made
    return None


def _is_whole(module: Module, composed: ast.Call) -> bool:
    """Tell whether every part of a composition is in sight, and it ends in a tensor."""
    given = composed.args[0] if composed.args else None
    parts = given.elts if isinstance(given, ast.List) else []
    names = [module.qualified(p.func) or "" for p in parts if isinstance(p, ast.Call)]
    is_seen = len(names) == len(parts) and all(n.startswith("torchvision.") for n in names)
    return is_seen and any(n.endswith((".ToTensor", ".ToDtype")) for n in names)


def _is_literal(call: ast.Call) -> bool:
    return all(literal(a) is not None for a in (*call.args, *(k.value for k in call.keywords)))


def _numbers(call: ast.Call) -> list[str]:
    given = [*call.args, *(k.value for k in call.keywords)]
    return [str(list(v) if isinstance(v := literal(a), (list, tuple)) else v) for a in given]


_PROGRAM = """
from torchvision import transforms

train_transform = transforms.Compose([
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize({train}),
])
val_transform = transforms.Compose([transforms.ToTensor(){val}])
"""


def _program(val: str, train: str = "(0.5,), (0.5,)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(train=train, val=val)})


FIRES = {
    "other numbers": _program(", transforms.Normalize((0.1307,), (0.3081,))"),
    "not at all": _program(""),
}

SILENT = {
    "the same": _program(", transforms.Normalize((0.5,), (0.5,))"),
    "near miss: the same as lists": _program(", transforms.Normalize([0.5], [0.5])"),
    "near miss: computed": _program(", transforms.Normalize(mean, std)"),
}
