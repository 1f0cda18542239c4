"""A freeze that freezes nothing: the attribute is mistyped, or set on a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.runtime.observations import processes_of
from traindx.source import project_of
from traindx.source.module import Module, key_of
from traindx.source.patches import Edit, diff, replacing
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

MISTYPED = frozenset(
    {"require_grad", "requires_grads", "require_grads", "required_grad", "requires_gradient",
     "requiresgrad", "require_gradient", "requires_grad_flag", "required_grads"}
)  # fmt: skip
RIGHT = "requires_grad"
LIKE = 0.85  # letters that are doubled, swapped or left out; `retains_grad` is 0.80
_FREEZES = re.compile(r"requires_grad(?:_\(|\s*=)\s*False|\bfreeze", re.IGNORECASE)
_OFF = re.compile(r"requires_grad(?:_\(|\s*=)\s*False")
LOOKS_ONLY = frozenset(
    {"print", "summary", "len", "parameters", "named_parameters", "children", "named_children",
     "modules", "named_modules", "to", "cuda", "cpu", "train", "eval", "state_dict", "numel",
     "load_state_dict", "info", "append", "startswith", "requires_grad_"}
)  # fmt: skip
_TRAINS = re.compile(r"backward\(|\bfit\(|\btrain\w*\(|\.step\(|run\(")
MODULES = frozenset({"children", "modules", "named_children", "named_modules"})


@detector(needs=("source",), suggests=("frozen-parameters",))
def check(run: Run) -> Iterator[Finding]:
    """`requires_grad` is mistyped, or set on a module, where it does nothing.

    ## What it detects
    An assignment to `require_grad`, `requires_grads` or their kin, `requires_grad = False` on a
    module instead of on its parameters, and a freeze that a later loop over all parameters of the
    same model takes back before anything is trained or the model runs.

    ## Why it matters
    Python makes a new attribute and says nothing. What was meant to be frozen trains on (and what
    was meant to train stays frozen).

    ## What to do
    Set `requires_grad` on every parameter, or call `module.requires_grad_(False)`.

    ## When it is wrong
    A class may have an attribute of that name of its own; names that a class defines in sight are
    left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        yield from _taken_back(project, module)
        own = {n.target.id for n in module.nodes(ast.AnnAssign) if isinstance(n.target, ast.Name)}
        for node in module.nodes(ast.Assign):
            target = node.targets[0]
            if not isinstance(target, ast.Attribute) or not isinstance(node.value, ast.Constant):
                continue
            if not isinstance(node.value.value, bool) or key_of(target.value) == "self":
                continue
            if node.value.value and not _is_any_frozen(run, project):
                continue
            if _is_mistyped(target.attr) and target.attr not in own:
                yield _finding(module, node, f"`{target.attr}` is no attribute of a parameter",
                               _renamed(target))  # fmt: skip
            elif target.attr == "requires_grad" and _is_module(project, module, target.value):
                owner = module.source(target.value)
                new = f"{owner}.requires_grad_({node.value.value})"
                yield _finding(module, node, f"`requires_grad` on `{owner}`, a module, is ignored",
                               replacing(node, new))  # fmt: skip


def _taken_back(project: Project, module: Module) -> Iterator[Finding]:
    """Yield the loops that turn every parameter on after some had been turned off for good."""
    loops = [(n, *s) for n in module.nodes(ast.For) if (s := _switched(n)) is not None]
    for on, model, value, is_all in loops:
        if not value or not is_all or any(isinstance(n, ast.If) for n in module.enclosing(on)):
            continue
        scope = module.function_of(on)
        for off, other, frozen, _ in loops:
            is_before = off.lineno < on.lineno and module.function_of(off) is scope
            if frozen or other != model or not is_before:
                continue
            if _is_of_use(project, module, (off, on), model) or _is_frozen_after(module, on):
                continue
            yield Finding(
                claim=f"The freeze has no effect: all parameters of `{model}` are turned on again",
                strength=Strength.STRONG,
                evidence=(
                    module.cite(off, "parameters are turned off here"),
                    module.cite(on, "and all are turned on here, before anything is trained"),
                ),
                shows="frozen-parameters",
                is_symptom=True,
                location=module.location(on),
            )
            return


def _is_of_use(
    project: Project, module: Module, loops: tuple[ast.For, ast.For], model: str
) -> bool:
    """Tell whether anything trains, runs the model or leaves between the freeze and its end."""
    first, last = loops[0].end_lineno or loops[0].lineno, loops[1].lineno
    if _TRAINS.search("\n".join(module.lines[first : last - 1])):
        return True
    scope: ast.AST = module.function_of(loops[1]) or module.tree
    between = [n for n in ast.walk(scope) if first < getattr(n, "lineno", 0) < last]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Return)) for n in between):
        return True
    calls = (n for n in between if isinstance(n, ast.Call))
    return any(_may_run(project, module, scope, c, model) for c in calls)


def _may_run(project: Project, module: Module, scope: ast.AST, call: ast.Call, model: str) -> bool:
    """Tell whether a call is of the model, is given it, or is of an object made from it."""
    name = module.qualified(call.func) or ""
    if name.startswith(("torch.optim.", "torch.nn.")) or name.rsplit(".", 1)[-1] in LOOKS_ONLY:
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    if key_of(call.func) == model or any(key_of(g) == model for g in given):
        return True
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    key = key_of(owner)
    made = [] if key is None else project.lookup(module, scope, key)
    return key == model or any(key_of(n) == model for v in made for n in ast.walk(v))


def _is_frozen_after(module: Module, on: ast.For) -> bool:
    """Tell whether turning all on only clears the way for another freeze."""
    scope: ast.AST = module.function_of(on) or module.tree
    end = int(getattr(scope, "end_lineno", 0) or len(module.lines))
    return bool(_OFF.search("\n".join(module.lines[on.end_lineno or on.lineno : end])))


def _switched(loop: ast.For) -> tuple[str, bool, bool] | None:
    """The model whose parameters a loop switches, to what, and whether it switches all of them."""
    call = loop.iter
    func = call.func if isinstance(call, ast.Call) and not call.args else None
    if not isinstance(func, ast.Attribute) or func.attr not in ("parameters", "named_parameters"):
        return None
    for node in ast.walk(loop):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Attribute) or target.attr != RIGHT:
            continue
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, bool):
            return key_of(func.value) or "", value.value, node in loop.body
    return None


def _is_mistyped(name: str) -> bool:
    """Tell whether a name is meant to be `requires_grad`: a known slip, or letters gone astray."""
    if name in MISTYPED:
        return True
    is_like = name[:1] == RIGHT[0] and name != RIGHT and name.endswith("grad")
    return is_like and SequenceMatcher(None, name, RIGHT).ratio() > LIKE


def _is_any_frozen(run: Run, project: Project) -> bool:
    """Parameters train unless told otherwise: turning on what was never off lacks nothing."""
    models = [m for p in processes_of(run) for m in p.models]
    if models:
        return any(not p.is_trainable for m in models for p in m.parameters)
    return any(_FREEZES.search(m.text) for m in project.modules)


def _finding(module: Module, node: ast.Assign, claim: str, edit: Edit) -> Finding:
    return Finding(
        claim=f"The setting has no effect: {claim}",
        strength=Strength.STRONG,
        evidence=(module.cite(node, f"`{ast.unparse(node)}` only makes a new attribute"),),
        shows="frozen-parameters",
        is_symptom=True,
        location=module.location(node),
        patch=diff(module, edit),
    )


def _renamed(target: ast.Attribute) -> Edit:
    line, end = target.end_lineno or target.lineno, target.end_col_offset or 0
    return Edit(line, end - len(target.attr), line, end, "requires_grad")


def _is_module(project: Project, module: Module, node: ast.expr) -> bool:
    key = key_of(node)
    if key is None or isinstance(node, ast.Subscript):
        return False
    for above in module.enclosing(node):
        if isinstance(above, ast.For):
            bound = [n.id for n in ast.walk(above.target) if isinstance(n, ast.Name)]
            if key in bound:
                return key == bound[-1] and _loops_modules(above.iter)
    at: ast.AST = module.function_of(node) or module.tree
    values = project.lookup(module, at, key)
    made = [value_of(project, module, at, v) for v in values]
    return bool(made) and all(m.kind is Kind.MODEL and _is_made(m.made_by) for m in made)


def _is_made(name: str) -> bool:
    return name.rsplit(".", 1)[-1] not in ("Parameter", "ParameterList", "UninitializedParameter")


def _loops_modules(node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in MODULES


_PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
{freeze}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def _program(freeze: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(freeze=freeze)})


_EACH = "for p in model.parameters():\n    p.{attribute} = False"

_BACK = """
for name, p in model.named_parameters():
    if name.startswith("0."):
        p.requires_grad = False
{between}
decayed = []
for name, p in model.named_parameters():
    {on}
    decayed.append(p)
"""


def _back(on: str = "p.requires_grad = True", between: str = "") -> Run:
    return _program(_BACK.format(on=on, between=between))


FIRES = {
    "taken back": _back(),
    "taken back after a look": _back(between="print(model)\nmodel.cuda()"),
    "mistyped": _program(_EACH.format(attribute="require_grad")),
    "letters astray": _program(_EACH.format(attribute="requeires_grad")),
    "plural": _program(_EACH.format(attribute="requires_grads")),
    "on the module": _program("model.requires_grad = False"),
    "turned on in vain": _program(
        f"model.requires_grad_(False)\n{_EACH.format(attribute='require_grad')}".replace(
            "= False", "= True"
        )
    ),
    "on the children": _program("for c in model.children():\n    c.requires_grad = False"),
}

SILENT = {
    "near miss: a freeze that stays": _back(on="pass"),
    "near miss: frozen while it runs": _back(between="x_adv = perturb(model, x, y)"),
    "near miss: frozen while a part of another object": _back(
        between="attack = Attack(model)\nx_adv = attack(x, y)"
    ),
    "near miss: frozen for the body of a with": _program(
        "def frozen(model):\n"
        "    for p in model.parameters():\n        p.requires_grad = False\n"
        "    yield\n"
        "    for p in model.parameters():\n        p.requires_grad = True"
    ),
    "near miss: frozen anew": _program(
        f"{_BACK.format(on='p.requires_grad = True', between='')}\nmodel[1].requires_grad_(False)"
    ),
    "near miss: unfrozen after a first stage": _back(between="train(model, epochs=3)"),
    "on the parameters": _program(_EACH.format(attribute="requires_grad")),
    "near miss: mistyped, but nothing was ever off": _program(
        _EACH.format(attribute="require_grad").replace("= False", "= True")
    ),
    "near miss: another flag": _program(_EACH.format(attribute="retains_grad")),
    "near miss: the method": _program("model.requires_grad_(False)"),
    "near miss: a parameter of its own": _program(
        "scale = nn.Parameter(torch.ones(1))\nscale.requires_grad = False"
    ),
}
