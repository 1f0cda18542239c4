"""Labels are permuted or replaced at random while their inputs stay as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import training_loops
from traindx.source.losses import losses_in
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.phases import is_without_gradients
from traindx.source.project import Project
from traindx.source.values import Kind, value_of

PERMUTED = ("randperm", "permutation", "permuted")
DRAWN = ("rand", "rand_like", "bernoulli", "randint", "randint_like", "random", "choice")
LABELS = frozenset({"y", "ys", "label", "labels", "target", "targets", "lbl", "lbls", "gt"})
SEEDED = 3  # lines: with one seed before each, two permutations are the same
ON_PURPOSE = ("noise", "noisy", "corrupt", "flip", "poison", "permut", "null", "smooth", "mix",
              "marginal", "negativ", "contrast", "mismatch", "chance", "baseline")  # fmt: skip
JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "column_stack"})


@detector(needs=("source",), suggests=("misaligned-labels", "label-noise"))
def check(run: Run) -> Iterator[Finding]:
    """The labels of a batch or a dataset are put in another order, or in part drawn anew, alone.

    ## What it detects
    A loss whose target is `labels[torch.randperm(…)]`; labels that are bound to a permutation of
    themselves that nothing else is indexed by; labels of which a random part is replaced, as in
    `torch.where(torch.rand(…) < p, other, labels)`, on the way to the loss.

    ## Why it matters
    The inputs keep their order, so labels belong to other examples: there is nothing to learn but
    the frequency of the classes.

    ## What to do
    Index inputs and labels by one permutation; take the replacement out.

    Labels that are rolled along the examples are a remark, for a forecast is made so, too.

    ## When it is wrong
    Mixing examples permutes inputs too and is left alone; so is code that says by a name that it
    disturbs labels on purpose, and `y` that is no label but an input: joined with others, or given
    to a model, as for the pairs that an estimate of mutual information contrasts.
    """
    project = project_of(run)
    seen: set[int] = set()
    for module, value, node in (*_in_losses(project), *_in_bindings(project)):
        if node.lineno in seen or _is_on_purpose(module, node) or _is_seeded(module, node):
            continue
        cause = _cause(project, module, value)
        if cause:
            seen.add(node.lineno)
            yield _finding(module, node, cause)
        elif _is_rolled(value):
            yield _remark(module, node)


def _in_losses(project: Project) -> Iterator[tuple[Module, ast.expr, ast.stmt]]:
    for loss in losses_in(project):
        statement = loss.act.statement
        if loss.target is None or statement is None or is_without_gradients(loss.act):
            continue
        yield loss.module, loss.target, statement


def _in_bindings(project: Project) -> Iterator[tuple[Module, ast.expr, ast.stmt]]:
    """Where labels are bound to something made of themselves."""
    if training_loops(project) and all(x.target is None for x in losses_in(project)):
        return  # what is named like a label is none: no loss takes it
    for module in project.training_modules:
        for node in module.nodes(ast.Assign):
            target = node.targets[0]
            name = key_of(target)
            is_single = len(node.targets) == 1 and name is not None
            if not is_single or not _is_label(name or "") or not _mentions(node.value, name or ""):
                continue
            if not _is_input(project, module, node, name or ""):
                yield module, node.value, node


def _is_input(project: Project, module: Module, node: ast.Assign, name: str) -> bool:
    """Tell whether what was bound goes into a model afterwards, and into no loss."""
    function = module.function_of(node)
    scope = function or module.tree
    later = [n for n in ast.walk(scope) if getattr(n, "lineno", 0) > node.lineno]
    targets = [x.target for x in losses_in(project) if x.scope is scope and x.target is not None]
    if any(_mentions(t, name) for t in targets):
        return False
    calls = [n for n in later if isinstance(n, ast.Call)]
    is_joined = any(_joins(module, c, name) or _feeds(project, module, c, name) for c in calls)
    returned = [n.value for n in later if isinstance(n, ast.Return) and n.value is not None]
    is_alone = function is not None and any(key_of(r) == name for r in returned)
    return is_joined or is_alone


def _joins(module: Module, call: ast.Call, name: str) -> bool:
    """`torch.cat([x, y])`; labels that are joined with labels stay labels."""
    if (key_of(call.func) or "").rsplit(".", 1)[-1] not in JOINS or not call.args:
        return False
    names = {n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)} - set(module.aliases)
    return name in names and not all(map(_is_label, names))


def _feeds(project: Project, module: Module, call: ast.Call, name: str) -> bool:
    at = module.function_of(call) or module.tree
    is_given = any(key_of(a) == name for a in call.args)
    return is_given and value_of(project, module, at, call.func).kind is Kind.MODEL


def _cause(project: Project, module: Module, value: ast.expr) -> str:
    if isinstance(value, ast.Subscript) and _is_label(key_of(value.value) or ""):
        return "misaligned-labels" if _is_lone_order(project, module, value) else ""
    if not isinstance(value, ast.Call):
        return ""
    name = key_of(value.func) or ""
    last = name.rsplit(".", 1)[-1]
    if last in PERMUTED and value.args and _is_label(key_of(value.args[0]) or ""):
        return "misaligned-labels"
    if last != "where" or len(value.args) != 3:
        return ""
    kept = [a for a in value.args[1:] if _is_label(key_of(a) or "")]
    other = [a for a in value.args[1:] if a not in kept and _is_another_label(a)]
    is_drawn = len(kept) == len(other) == 1 and _is_drawn(project, module, value.args[0])
    return "label-noise" if is_drawn else ""


def _is_rolled(value: ast.expr) -> bool:
    """Tell whether labels are moved along the examples: `y.roll(1, 0)`, `np.roll(y, 1)`."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    is_method = _is_label(key_of(value.func.value) or "")
    own = 0 if is_method else 1
    is_labels = is_method or (bool(value.args) and _is_label(key_of(value.args[0]) or ""))
    given = argument(value, "dims", own + 1) or argument(value, "axis")
    return value.func.attr == "roll" and is_labels and literal(given) in (0, None)


def _is_another_label(node: ast.expr) -> bool:
    """A label of another example, or one that is drawn; one fixed value marks what is left out."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    is_moved = _is_call_of(node, ("roll", "flip", *PERMUTED)) or isinstance(node, ast.Subscript)
    return _has_draw(node) or (is_moved and any(map(_is_label, names)))


def _is_lone_order(project: Project, module: Module, taken: ast.Subscript) -> bool:
    """Tell whether labels are indexed by a permutation that nothing else is indexed by."""
    order = taken.slice
    if isinstance(order, ast.Call):
        return (key_of(order.func) or "").rsplit(".", 1)[-1] in PERMUTED
    if not isinstance(order, ast.Name):
        return False
    made = project.lookup(module, taken, order.id)
    if len(made) != 1 or not _is_call_of(made[0], PERMUTED):
        return False
    uses = [n for n in module.nodes(ast.Name) if n.id == order.id and isinstance(n.ctx, ast.Load)]
    return len(uses) == 1


def _is_drawn(project: Project, module: Module, mask: ast.expr) -> bool:
    """Tell whether a mask compares fresh random numbers with a threshold."""
    if isinstance(mask, ast.Name):
        made = project.lookup(module, mask, mask.id)
        return len(made) == 1 and not isinstance(made[0], ast.Name) and _has_draw(made[0])
    return _has_draw(mask)


def _has_draw(node: ast.expr) -> bool:
    return any(_is_call_of(n, DRAWN) for n in ast.walk(node))


def _is_call_of(node: ast.AST, names: tuple[str, ...]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return (key_of(node.func) or "").rsplit(".", 1)[-1] in names


def _is_label(key: str) -> bool:
    words = key.rsplit(".", 1)[-1].lower().strip("_").split("_")
    return bool(set(words) & LABELS)


def _mentions(value: ast.expr, name: str) -> bool:
    return any(key_of(n) == name for n in ast.walk(value))


def _is_on_purpose(module: Module, node: ast.stmt) -> bool:
    function = module.function_of(node)
    cls = module.class_of(node)
    names = [key_of(n) or "" for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
    names += [x.name for x in (function, cls) if x is not None]
    return any(word in name.lower() for name in names for word in ON_PURPOSE)


def _is_seeded(module: Module, node: ast.stmt) -> bool:
    before = (c.lineno for c, name in module.calls() if "seed" in name.rsplit(".", 1)[-1])
    return any(0 <= node.lineno - line <= SEEDED for line in before)


def _remark(module: Module, node: ast.stmt) -> Finding:
    return Finding(
        claim="Labels are moved along the examples while their inputs stay as they are",
        strength=Strength.MODERATE,
        evidence=(module.cite(node, f"`{ast.unparse(node)}`"),),
        suggests={"misaligned-labels": Strength.STRONG},
        location=module.location(node),
    )


def _finding(module: Module, node: ast.stmt, cause: str) -> Finding:
    is_order = cause == "misaligned-labels"
    what = "put in another order" if is_order else "replaced at random in part"
    return Finding(
        claim=f"Labels are {what} while their inputs stay as they are",
        strength=Strength.STRONG,
        evidence=(module.cite(node, f"`{ast.unparse(node)}`"),),
        shows=cause,
        is_symptom=True,
        location=module.location(node),
    )


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, labels in loader:
    {before}
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model({data}), {labels})
    loss.backward()
    optimizer.step()
"""


def _program(before: str = "pass", data: str = "data", labels: str = "labels") -> Run:
    text = _PROGRAM.format(before=before, data=data, labels=labels)
    return make_run(sources={"train.py": text})


_PAIRS = """
import torch
from torch import nn

critic = nn.Bilinear(4, 4, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)

def pair(x, y):
    y = y[torch.randperm(len(y))]
    return {pair}

for x, y in loader:
    optimizer.zero_grad()
    (score(pair(x, y)).exp().mean().log() - score((x, y)).mean()).backward()
    optimizer.step()
"""
_ORDER = "order = torch.randperm(len(data))"

FIRES = {
    "permuted in the loss": _program(labels="labels[torch.randperm(len(labels))]"),
    "permuted before": _program(f"{_ORDER}; labels = labels[order]"),
    "replaced in part": _program(
        "wrong = torch.rand(len(labels)) < 0.4; "
        "labels = torch.where(wrong, torch.randint(0, 3, labels.shape), labels)"
    ),
    "rolled": _program("labels = labels.roll(1, 0)"),
    "exchanged in part": _program(
        "labels = torch.where(torch.rand(len(labels)) < 0.4, labels.roll(1), labels)"
    ),
}

SILENT = {
    "as they come": _program(),
    "near miss: both in one order": _program(_ORDER, "data[order]", "labels[order]"),
    "near miss: one seed before each": _program(
        "torch.manual_seed(0); labels = labels[torch.randperm(len(labels))]"
    ),
    "near miss: pairs, for no loss with a target": make_run(
        sources={"train.py": _PAIRS.format(pair="(x, y)")}
    ),
    "near miss: pairs, joined": make_run(
        sources={"train.py": _PAIRS.format(pair="torch.cat([x, y], dim=1)")}
    ),
    "near miss: pairs, scored by a model": make_run(
        sources={"train.py": _PAIRS.format(pair="critic(x, y)")}
    ),
    "near miss: a selection": _program("keep = labels > 0", "data[keep]", "labels[keep]"),
    "near miss: a mask that is not random": _program(
        "labels = torch.where(mask, labels, torch.tensor(-100))"
    ),
    "near miss: rolled along the sequence": _program("labels = labels.roll(-1, dims=1)"),
    "near miss: on purpose": _program(
        "noisy = torch.rand(len(labels)) < 0.4; labels = torch.where(noisy, labels.roll(1), labels)"
    ),
    "near miss: masked language modelling": _program(
        "masked = torch.bernoulli(rate).bool(); labels = torch.where(masked, labels, -100)"
    ),
    "near miss: labels dropped for guidance": _program(
        "drop = torch.rand(len(labels)) < 0.1; labels = torch.where(drop, empty, labels)"
    ),
}
