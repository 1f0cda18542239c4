"""A setting is written down, nothing reads it, and another value is in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of, literal
from traindx.source.project import Project
from traindx.source.settings import DECAY, RATE, given_values
from traindx.source.values import Kind, kind_made_by

NAMES = {"learning rate": RATE, "weight decay": DECAY}
OPTION = "add_argument"
# what is handed a whole configuration to show it, and takes nothing from it
SHOWS = re.compile(
    r"(?:^|\.)(?:print|pprint|format|str|repr|dumps?|save|info|debug|log\w*|add_text|add_hparams"
    r"|vars|asdict|update|init|dict|items|sorted|parse_args|write|save_hyperparameters)$"
)
GROUP = re.compile(r"group|^(?:g|pg|p)$|state_dict|last_lr", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class _Setting:
    """A number under a name: an option, an entry, a constant, a field."""

    module: Module
    node: ast.AST
    name: str
    value: float


@detector(needs=("source",), suggests=("config-not-applied",))
def check(run: Run) -> Iterator[Finding]:
    """The configured learning rate or weight decay is never read, and the code has another one.

    ## What it detects
    An option of the command line, an entry of a dictionary, a constant or a field of a dataclass
    that is named for the learning rate or the weight decay, which no line of the project reads,
    while every optimizer is made with a number of its own that differs from it.

    ## Why it matters
    Whoever changes the setting changes nothing, and judges the run by a value that was not used.

    ## What to do
    Give the optimizer the setting: `lr=args.lr`.

    ## When it is wrong
    Where the whole configuration is handed to code out of sight, that may read it; then nothing is
    said. Nor is it where both numbers are equal.
    """
    project = project_of(run)
    for words, names in NAMES.items():
        used = list(_used(project, names))
        settings = [s for m in project.training_modules for s in _settings(m, names)]
        if len(settings) != 1 or not used or _is_read(project, settings[0]):
            continue
        setting = settings[0]
        numbers = [literal(value) for _, value in used]
        if any(not isinstance(n, (int, float)) or n == setting.value for n in numbers):
            continue
        module, value = used[0]
        yield Finding(
            claim=f"The {words} is set to {setting.value:g} and never read: the optimizer is given "
            f"{ast.unparse(value)}",
            strength=Strength.STRONG,
            evidence=(
                setting.module.cite(setting.node, f"{setting.name} is {setting.value:g}, unread"),
                module.cite(value, f"the optimizer is given {ast.unparse(value)}"),
            ),
            shows="config-not-applied",
            is_symptom=True,
            location=module.location(value),
        )


def _used(project: Project, names: tuple[str, ...]) -> Iterator[tuple[Module, ast.expr]]:
    """What every optimizer is given; an optimizer without it makes the answer open."""
    for module in project.training_modules:
        for call, name in module.calls():
            if kind_made_by(name) is Kind.OPTIMIZER:
                yield from ((module, value) for value in given_values(call, name, names))


def _settings(module: Module, names: tuple[str, ...]) -> Iterator[_Setting]:
    for node in ast.walk(module.tree):
        for name, value in _named(module, node):
            number = literal(value)
            is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
            if name.lower() in names and is_number and isinstance(number, (int, float)):
                yield _Setting(module, value, name, float(number))


def _named(module: Module, node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The values that a node writes down under a name."""
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == OPTION:
        flags = [str(literal(a) or "") for a in node.args]
        long = next((f for f in flags if f.startswith("--")), flags[0] if flags else "")
        given = {k.arg: k.value for k in node.keywords}
        name = str(literal(given.get("dest")) or long.lstrip("-").replace("-", "_"))
        if "default" in given:
            yield name, given["default"]
    elif isinstance(node, ast.Dict) and isinstance(module.parents.get(node), ast.Assign):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(literal(k)), v) for k, v in pairs if k is not None)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        if isinstance(module.parents.get(node), ast.ClassDef):
            yield key_of(node.target) or "", node.value
    elif isinstance(node, ast.Assign) and module.function_of(node) is None:
        name = key_of(node.targets[0]) or ""
        if name.isupper():
            yield name, node.value


def _is_read(project: Project, setting: _Setting) -> bool:
    """Tell whether anything may read a setting by its name, or as part of the whole."""
    return any(
        _reads(module, node, setting.name) or _hands_on(project, module, node)
        for module in project.modules
        for node in ast.walk(module.tree)
    )


def _reads(module: Module, node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Constant) or node.value != name:
        return False
    above = module.parents.get(node)
    if isinstance(above, ast.Subscript):  # the optimizer's own groups hold the rate in use
        return GROUP.search((key_of(above.value) or "").rsplit(".", 1)[-1]) is None
    return not isinstance(above, ast.Dict)


def _hands_on(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a call hands a whole configuration to code that is out of sight."""
    if not isinstance(node, ast.Call):
        return False
    spread = [k.value for k in node.keywords if k.arg is None]
    if any(_is_configuration(n) for value in spread for n in ast.walk(value)):
        return True
    given = [*node.args, *(k.value for k in node.keywords)]
    if not any(_is_configuration(value) for value in given):
        return False
    name = module.qualified(node.func) or getattr(node.func, "attr", None) or ""
    is_own = project.find_function(module, name) or project.find_class(module, name)
    return not (is_own or name.startswith("self.") or SHOWS.search(name))


def _is_configuration(node: ast.AST) -> bool:
    name = key_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    return name is not None and CONFIGURATION.search(name) is not None


CONFIGURATION = re.compile(
    r"(?:^|\.)(?:args|opts?|options|cfg|conf|config|hparams|params|settings|flags|hp)$",
    re.IGNORECASE,
)


_PROGRAM = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-2)
args = parser.parse_args()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr={used})
{more}
"""


def _program(used: str, more: str = "print(args)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(used=used, more=more)})


FIRES = {
    "an option": _program("1e-6"),
    "the rate is shown from the optimizer": _program(
        "1e-6", 'print(optimizer.param_groups[0]["lr"])'
    ),
    "a constant": make_run(
        sources={
            "train.py": "import torch\nLEARNING_RATE = 0.05\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=5e-6)\n"
        }
    ),
    "an entry": make_run(
        sources={
            "train.py": "import torch\nconfig = {'learning_rate': 4e-3, 'steps': 9}\n"
            "optimizer = torch.optim.AdamW(model.parameters(), lr=4e-6)\n"
            "for step in range(config['steps']):\n    pass\n"
        }
    ),
}

SILENT = {
    "it is read": _program("args.lr"),
    "near miss: the schedule reads it": _program(
        "1e-6", "torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr)"
    ),
    "near miss: equal numbers": _program("0.01"),
    "near miss: handed on": _program("1e-6", "engine.fit(model, args)"),
    "near miss: taken apart": _program("1e-6", "Trainer(**vars(args))"),
    "near miss: read by its name": _program("1e-6", 'rate = getattr(args, "lr")'),
}
