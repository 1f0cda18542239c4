"""Validation images are augmented at random."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loaders import phase_of
from traindx.source.module import Module, argument, key_of

RANDOM = frozenset(
    {"RandomHorizontalFlip", "RandomVerticalFlip", "RandomCrop", "RandomResizedCrop",
     "RandomRotation", "RandomAffine", "ColorJitter", "RandomErasing", "RandAugment", "AutoAugment",
     "TrivialAugmentWide", "AugMix", "RandomPerspective", "RandomGrayscale", "RandomApply",
     "HorizontalFlip", "VerticalFlip", "RandomBrightnessContrast", "ShiftScaleRotate"}
)  # fmt: skip
COMPOSED = ("torchvision.transforms", "albumentations", "torchvision.transforms.v2", "monai.")


@detector(needs=("source",), suggests=("augmentation-in-validation",))
def check(run: Run) -> Iterator[Finding]:
    """Validation or test data pass through random transforms.

    ## What it detects
    A composition of transforms that is named for validation or testing and holds a random one, be
    it under another name, and a dataset named so that is given such a composition.

    ## Why it matters
    The metric changes from run to run and is lower than the model deserves; the best checkpoint is
    chosen by luck.

    ## What to do
    Give validation its own transforms: resize, centre crop, normalise, nothing random.

    ## When it is wrong
    Test-time augmentation is random on purpose; names that say so are left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        composed = dict(_compositions(module))
        for name, call in composed.items():
            found = _random_in(module, call)
            if found is not None and _is_held_out(name):
                yield _finding(module, found, f"`{name}`")
        for node in module.nodes(ast.Assign):
            name, same = key_of(node.targets[0]) or "", key_of(node.value) or ""
            found = _random_in(module, composed[same]) if same in composed else None
            if found is not None and _is_held_out(name) and not _is_held_out(same):
                yield _finding(module, found, f"`{name} = {same}`")
        for name, call in _datasets(module):
            given = argument(call, "transform")
            key = key_of(given) if given is not None else None
            if not _is_held_out(name) or key not in composed or phase_of(key or ""):
                continue
            found = _random_in(module, composed[key])
            if found is not None and len(project.lookup(module, call, key)) == 1:
                yield _finding(module, found, f"`{key}`, which `{name}` uses,", call)


def _finding(
    module: Module, found: ast.Call, what: str, dataset: ast.Call | None = None
) -> Finding:
    name = (module.qualified(found.func) or "").rsplit(".", 1)[-1]
    evidence = [module.cite(found, f"{name} is random")]
    if dataset is not None:
        evidence.append(module.cite(dataset, "held-out data pass through it"))
    return Finding(
        claim=f"Held-out data are augmented at random: {what} holds {name}",
        strength=Strength.STRONG,
        evidence=tuple(evidence),
        shows="augmentation-in-validation",
        is_symptom=True,
        location=module.location(dataset or found),
    )


def _is_held_out(name: str) -> bool:
    return phase_of(name) in ("val", "test") and "tta" not in name.lower()


def _compositions(module: Module) -> Iterator[tuple[str, ast.Call]]:
    for node in module.nodes(ast.Assign):
        name, call = key_of(node.targets[0]), node.value
        if name and isinstance(call, ast.Call):
            called = module.qualified(call.func) or ""
            if called.endswith(".Compose") and called.startswith(COMPOSED):
                yield name, call


def _random_in(module: Module, composed: ast.Call) -> ast.Call | None:
    for part in (composed, *_appended(module, composed)):
        for call, name in module.calls(part):
            last = name.rsplit(".", 1)[-1]
            is_random = last in RANDOM or (name.startswith("monai.") and last.startswith("Rand"))
            if is_random and name.startswith(COMPOSED):
                return call
    return None


def _appended(module: Module, composed: ast.Call) -> Iterator[ast.Call]:
    """What was put, one by one, into the list that is composed."""
    listed = key_of(composed.args[0]) if composed.args else None
    function = module.function_of(composed)
    if listed is None:
        return
    for call, name in module.calls():
        if name == f"{listed}.append" and call.lineno < composed.lineno:
            above = (module.parents.get(n) for n in (call, module.parents.get(call)) if n)
            is_plain = all(not isinstance(n, ast.If) for n in above)
            if module.function_of(call) is function and is_plain:
                yield call


def _datasets(module: Module) -> Iterator[tuple[str, ast.Call]]:
    for node in module.nodes(ast.Assign):
        name, call = key_of(node.targets[0]), node.value
        if name and isinstance(call, ast.Call) and argument(call, "transform") is not None:
            yield name, call


_PROGRAM = """
from torchvision import datasets, transforms

{name} = transforms.Compose([
    transforms.{first},
    transforms.ToTensor(),
])
train_set = datasets.CIFAR10("data", train=True, transform={name})
{dataset} = datasets.CIFAR10("data", train=False, transform={used})
"""


def _program(name: str, first: str, dataset: str = "test_set", used: str = "") -> Run:
    text = _PROGRAM.format(name=name, first=first, dataset=dataset, used=used or name)
    return make_run(sources={"train.py": text})


_LISTED = """
from torchvision import transforms
from data import Scans

def train(files, held_out):
    steps = []
    steps.append(transforms.{first})
    steps.append(transforms.ToTensor())
    chain = transforms.Compose(steps)
    trainSet = Scans(files, transform=chain)
    valSet = Scans(held_out, transform=chain)
"""
_SAME = """
from torchvision import transforms

train_transform = transforms.Compose([transforms.{first}, transforms.ToTensor()])
val_transform = train_transform
"""


def _text(text: str, first: str) -> Run:
    return make_run(sources={"train.py": text.format(first=first)})


FIRES = {
    "put into a list one by one": _text(_LISTED, "RandomResizedCrop(224)"),
    "the same under another name": _text(_SAME, "RandomHorizontalFlip()"),
    "one composition for both": _program("transform", "RandomHorizontalFlip()"),
    "a composition named for validation": _program("val_transform", "RandomCrop(32, padding=4)"),
}

SILENT = {
    "near miss: a list with nothing random": _text(_LISTED, "CenterCrop(224)"),
    "near miss: one fixed chain under two names": _text(_SAME, "Resize(256)"),
    "nothing random": _program("transform", "Resize(32)"),
    "near miss: random for training only": _program(
        "train_transform", "RandomHorizontalFlip()", used="plain"
    ),
    "near miss: test-time augmentation": _program(
        "tta_test_transform", "RandomHorizontalFlip()", "tta_test_set"
    ),
}
