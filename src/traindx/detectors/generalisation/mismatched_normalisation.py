"""Training and validation data are normalised differently."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import PHASES, phase_of, resolve
from traindx.source.module import Module, key_of, literal
from traindx.source.project import Project

CLOSE = 0.01  # rounded otherwise, not another normalisation
COMMON = frozenset(
    {"transform", "transforms", "transformation", "transformations", "tf", "tfs", "tfm", "tfms",
     "t", "trans", "compose", "composed", "preprocess", "preprocessing", "pipeline", "aug",
     "augment", "augmentation", "augmentations", "data", "set", "self", "img", "image", "images"}
)  # fmt: skip


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """The transforms of training and validation normalise with other numbers, or one not at all.

    ## What it detects
    Two compositions of torchvision transforms in one block, one named for training and one for
    validation or testing and otherwise alike, whose `Normalize` differs in its numbers or is there
    in training only.

    ## Why it matters
    The model sees shifted inputs in validation: a gap that no regularisation closes.

    ## What to do
    Use one `normalize = transforms.Normalize(mean, std)` in both.

    ## When it is wrong
    Numbers that are computed, and compositions that are joined from parts, are not compared, and
    neither are the transforms of different datasets or inputs, which their names tell apart.
    """
    project = project_of(run)
    for module in project.training_modules:
        found: dict[tuple[ast.AST, int, str, str], tuple[str, ast.Call]] = {}
        for node in module.nodes(ast.Assign):
            name, call = key_of(node.targets[0]) or "", node.value
            if isinstance(call, ast.Call) and _is_composition(module, call) and phase_of(name):
                block, branch = _block(module, node)
                found[block, branch, _subject(name), phase_of(name)] = (name, call)
        for (block, branch, subject, phase), (name, call) in found.items():
            train = found.get((block, branch, subject, "train"))
            if phase != "train" and train is not None:
                yield from _compare(project, module, train, (name, call))


def _block(module: Module, node: ast.Assign) -> tuple[ast.AST, int]:
    """The statement a line stands in, and its branch: other branches are for other data."""
    above = module.parents[node]
    branches: list[list[ast.stmt]] = [getattr(above, "body", []), getattr(above, "orelse", [])]
    return above, next((i for i, branch in enumerate(branches) if node in branch), -1)


def _subject(name: str) -> str:
    """What a name speaks of, apart from its phase: `mnist` of `mnist_train_tf`."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    phases = frozenset[str]().union(*PHASES.values())
    return " ".join(sorted({w for w in words if w} - phases - COMMON))


def _compare(
    project: Project, module: Module, train: tuple[str, ast.Call], held: tuple[str, ast.Call]
) -> Iterator[Finding]:
    first, second = _normalize(project, module, train[1]), _normalize(project, module, held[1])
    if first is None or not (_is_literal(first) and (second is None or _is_literal(second))):
        return
    if second is None and not _is_whole(module, held[1]):
        return
    if second is not None and _are_close(_numbers(first), _numbers(second)):
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


def _numbers(call: ast.Call) -> list[list[float]]:
    """The mean and the deviation, one number each where all channels have the same."""
    named = sorted((k for k in call.keywords if k.arg != "inplace"), key=lambda k: k.arg or "")
    values = [literal(a) for a in (*call.args[:2], *(k.value for k in named))]
    rows = [v if isinstance(v, (list, tuple)) else [v] for v in values]
    numbers = [[float(x) for x in r if isinstance(x, (int, float))] for r in rows]
    return [r[:1] if len(set(r)) == 1 else r for r in numbers]


def _are_close(one: list[list[float]], other: list[list[float]]) -> bool:
    if [len(r) for r in one] != [len(r) for r in other]:
        return False
    pairs = (p for a, b in zip(one, other, strict=True) for p in zip(a, b, strict=True))
    return all(abs(a - b) <= CLOSE for a, b in pairs)


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


def _renamed(val: str) -> Run:
    text = _PROGRAM.format(train="(0.5,), (0.5,)", val=", transforms.Normalize((0.25,), (0.38,))")
    return make_run(sources={"train.py": text.replace("val_transform", val)})


FIRES = {
    "under another word": _renamed("test_tfm"),
    "other numbers": _program(", transforms.Normalize((0.1307,), (0.3081,))"),
    "not at all": _program(""),
}

SILENT = {
    "near miss: the same for all channels": _program(
        ", transforms.Normalize(std=[0.5, 0.5, 0.5], mean=[0.5, 0.5, 0.5])"
    ),
    "near miss: rounded otherwise": _program(", transforms.Normalize((0.4999,), (0.5001,))"),
    "near miss: of another dataset": _renamed("usps_test_transform"),
    "near miss: in another branch": _renamed("if is_usps:\n    val_transform"),
    "the same": _program(", transforms.Normalize((0.5,), (0.5,))"),
    "near miss: the same as lists": _program(", transforms.Normalize([0.5], [0.5])"),
    "near miss: computed": _program(", transforms.Normalize(mean, std)"),
}
