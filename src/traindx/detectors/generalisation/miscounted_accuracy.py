"""The reported metric is computed wrongly."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Do
from traindx.source.columns import output_of
from traindx.source.loaders import loaders_in
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.phases import LOADER, entries
from traindx.source.project import Project

TURNS = ("T", "t", "mT", "transpose", "permute", "swapaxes")
ZEROES = ("zero_", "fill_", "reset", "clear")
# what a count of examples grows by
SIZES = re.compile(r"^(?:len|size|shape|numel|bs|n)$|batch_?size|num_", re.IGNORECASE)


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Iterator[Finding]:
    """Accuracy is taken over the batch, over a single logit, or from a count divided wrongly.

    ## What it detects
    An argmax over dimension 0 of a batch of outputs that is compared with the labels; an argmax
    over the output of a linear layer with one unit; a counter that is made before the loop over
    epochs, grows with every batch, and is divided by the length of one epoch; and a count of right
    examples that is divided by the number of batches, be it `len(loader)` or counted by one; and a
    mean over a count that grows by the number of the batch instead of by one.

    ## Why it matters
    Training may be fine while the number that decides about it is not: chance-level accuracy, one
    class for ever, or an accuracy above 100 %.

    ## What to do
    `argmax(dim=1)` over classes; a threshold for a single logit; reset counters every epoch.

    ## When it is wrong
    Outputs without a batch dimension are rightly taken over dimension 0; only outputs of a model
    within a loop over batches are looked at. Batches of one example are examples: where a loader
    gives such, counts are left alone. So are scores of several rows, where a single unit is no
    single class; matrices of similarities, where both dimensions are the batch; counts of steps;
    and counts that are divided once more, by the size of a batch or the number of epochs.
    """
    project = project_of(run)
    outputs, is_of_one = _outputs(project), _may_be_of_one(project)
    for module in project.training_modules:
        for call, _ in module.calls():
            claim = _wrong_dimension(project, module, call, outputs)
            if claim:
                yield _finding(module, call, claim)
        yield from _never_reset(module)
        yield from _by_index(module)
        if not is_of_one:
            yield from _per_batch(module)


def _wrong_dimension(
    project: Project, module: Module, call: ast.Call, outputs: set[ast.AST]
) -> str:
    """Say what is wrong with the dimension of an argmax; empty where nothing is."""
    taken = _argmax(module, call)
    if taken is None:
        return ""
    given, dim = taken
    scope = module.function_of(call) or module.tree
    if dim == 0:
        made = _last_bound(project, scope, given)
        is_wrong = made in outputs and not _is_of_pairs(module, scope, given)
        if is_wrong and _is_compared(module, call):
            return "The argmax runs over the batch, not over classes"
    elif dim == -1 or (dim == 1 and not _may_have_rows(module, scope, given)):
        output = output_of(project, module, scope, given)
        if output is not None and output.units == 1:
            return "An argmax over a single output is always 0"
    return ""


def _finding(module: Module, node: ast.AST, claim: str) -> Finding:
    return Finding(
        claim=claim,
        strength=Strength.STRONG,
        evidence=(module.cite(node, f"`{ast.unparse(node)}`"),),
        shows="metric-bug",
        is_symptom=True,
        location=module.location(node),
    )


def _outputs(project: Project) -> set[ast.AST]:
    """The calls of a model within a loop over a loader whose output gets a name."""
    found: set[ast.AST] = set()
    for entry in entries(project):
        for act in entry.acts:
            statement = act.statement
            if act.do is not Do.FORWARD or not act.loops:
                continue
            loop = act.loops[-1]
            over = ast.unparse(loop.iter).lower() if isinstance(loop, ast.For) else ""
            if "load" in over and isinstance(statement, ast.Assign) and statement.value is act.node:
                found |= {act.node} if key_of(statement.targets[0]) else set()
    return found


def _last_bound(project: Project, scope: ast.AST, given: ast.expr) -> ast.expr | None:
    """What a name was last bound to before it is used, in the order of the lines."""
    bound = project.bindings(scope).get(key_of(given) or "", [])
    before = (v for v in bound if _position(v) < _position(given))
    return max(before, key=_position, default=None)


def _position(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _is_of_pairs(module: Module, scope: ast.AST, given: ast.expr) -> bool:
    """Tell whether an output is a matrix of similarities: it is also read the other way."""
    name = key_of(given)
    turned = (n for n in ast.walk(scope) if isinstance(n, ast.Attribute) and n.attr in TURNS)
    if any(key_of(n.value) == name for n in turned):
        return True
    others = (_argmax(module, call) for call, _ in module.calls(scope))
    return any(o is not None and key_of(o[0]) == name and o[1] in (1, -1) for o in others)


def _may_have_rows(module: Module, scope: ast.AST, given: ast.expr) -> bool:
    """Tell whether a unit per row is known or likely: scores of the members of a set.

    Within a model's `forward` inputs may have any number of dimensions; elsewhere a cross entropy
    over one unit, or its last dimension being dropped, says that there is another before it.
    """
    if getattr(scope, "name", "") == "forward":
        return True
    name = key_of(given)
    for call, called in module.calls(scope):
        last = called.rsplit(".", 1)[-1]
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call
        is_dropped = last == "squeeze" and key_of(owner) == name and bool(call.args)
        is_ranked = "cross_entropy" in last and any(key_of(a) == name for a in call.args[:1])
        if is_dropped or is_ranked:
            return True
    return False


def _argmax(module: Module, call: ast.Call) -> tuple[ast.expr, object] | None:
    """What an argmax is taken of, and over which dimension."""
    name, func = module.qualified(call.func) or "", call.func
    if name in ("torch.argmax", "torch.max") and len(call.args) + len(call.keywords) > 1:
        return (call.args[0], literal(argument(call, "dim", 1))) if call.args else None
    is_method = isinstance(func, ast.Attribute) and func.attr in ("argmax", "max")
    owner = func.value if is_method and isinstance(func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id not in module.aliases:
        return owner, literal(argument(call, "dim", 0))
    return None


def _is_compared(module: Module, call: ast.Call) -> bool:
    """Tell whether the result is compared with something: at once, or under its name."""
    above = module.parents.get(call)
    if isinstance(above, ast.Compare) or (isinstance(above, ast.Attribute) and above.attr == "eq"):
        return True
    statement = module.statement_of(call)
    names: set[str | None] = set()
    for target in getattr(statement, "targets", []):
        names |= {key_of(n) for n in ast.walk(target)}
    scope: ast.AST = module.function_of(call) or module.tree
    compared = (n for n in ast.walk(scope) if isinstance(n, ast.Compare))
    return any(isinstance(n.ops[0], ast.Eq) and key_of(n.left) in names - {None} for n in compared)


def _never_reset(module: Module) -> Iterator[Finding]:
    for outer in module.nodes(ast.For):
        if "epoch" not in (key_of(outer.target) or "").lower():
            continue
        inner = [n for n in outer.body if isinstance(n, ast.For)]
        grown = {
            n.target.id
            for loop in inner
            for n in ast.walk(loop)
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
            if not _is_progress(n.value)
        }
        kept = grown - _reset(outer)
        for node in (n for s in outer.body if s not in inner for n in ast.walk(s)):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
                continue
            name = next(iter(_factors(node.left) & kept), None)
            if name is not None and _is_one_epoch(node.right) and not _is_divided(module, node):
                claim = f"`{name}` grows over all epochs and is divided by the length of one"
                yield _finding(module, node, claim)
                break


def _is_progress(value: ast.expr) -> bool:
    """Tell whether a count grows by steps or examples seen: by epoch it says how far it is."""
    called = value.func if isinstance(value, ast.Call) else value
    last = (key_of(called) or "").rsplit(".", 1)[-1]
    return literal(value) is not None or bool(SIZES.search(last))


def _reset(loop: ast.For) -> set[str]:
    """The names that start anew in a loop: bound, or set to zero in place."""
    assigned = (n for n in ast.walk(loop) if isinstance(n, ast.Assign))
    bound = {k for n in assigned for t in n.targets for p in ast.walk(t) if (k := key_of(p))}
    methods = (n for n in ast.walk(loop) if isinstance(n, ast.Attribute))
    return bound | {k for n in methods if n.attr in ZEROES and (k := key_of(n.value))}


def _is_divided(module: Module, node: ast.expr) -> bool:
    """Tell whether a quotient is divided once more: at once, or under the name it gets."""
    above = module.parents.get(node)
    while isinstance(above, ast.BinOp):
        if isinstance(above.op, ast.Div) and node in ast.walk(above.left):
            return True
        above = module.parents.get(above)
    targets = above.targets if isinstance(above, ast.Assign) else []
    names = {k for t in targets if (k := key_of(t))}
    scope: ast.AST = module.function_of(node) or module.tree
    return any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and key_of(n.left) in names
        for n in ast.walk(scope)
    )


def _by_index(module: Module) -> Iterator[Finding]:
    """Counts that grow by the index of `enumerate` and that a sum is divided by."""
    for loop in module.nodes(ast.For):
        is_counted = isinstance(loop.iter, ast.Call) and key_of(loop.iter.func) == "enumerate"
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
        index = key_of(first) if is_counted and first is not None else None
        if index is None:
            continue
        grown = {
            key_of(n.target): n
            for s in loop.body
            for n in ast.walk(s)
            if isinstance(n, ast.AugAssign) and key_of(n.value) == index
        }
        scope: ast.AST = module.function_of(loop) or module.tree
        for node in ast.walk(scope):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                name = next((k for n in ast.walk(node.right) if (k := key_of(n)) in grown), None)
                if name is not None:
                    claim = f"`{name}` grows by the index of the batch and is divided by as a count"
                    yield _finding(module, grown[name], claim)
                    break


def _per_batch(module: Module) -> Iterator[Finding]:
    """Counts of examples, grown in a loop over a loader, that are divided by its batches."""
    for node in module.nodes(ast.BinOp):
        if not isinstance(node.op, ast.Div) or _is_divided(module, node):
            continue
        scope: ast.AST = module.function_of(node) or module.tree
        loops = [n for n in ast.walk(scope) if isinstance(n, ast.For) and _is_over_batches(n)]
        for loop in loops:
            what = _batches(scope, loop, node.right)
            if what and _grown(loop, _counts) & _factors(node.left):
                yield _finding(module, node, f"Examples are counted and divided by batches, {what}")
                break


def _is_over_batches(loop: ast.For) -> bool:
    return any(LOADER.search(k) for n in ast.walk(loop.iter) if (k := key_of(n)))


def _batches(scope: ast.AST, loop: ast.For, divisor: ast.expr) -> str:
    """Say how a divisor counts the batches of a loop; empty where it counts anything else."""
    over, counter = _length_of(divisor), key_of(divisor)
    if over:
        is_same = any(key_of(n) == over for n in ast.walk(loop.iter))
        return f"len({over})" if is_same and LOADER.search(over.rsplit(".", 1)[-1]) else ""
    inner = (n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.For))
    own = _grown(loop, _is_one) - {k for n in inner for k in _grown(n, _is_one)}
    others = _grown(scope, lambda value: not _is_one(value))
    return f"`{counter}`, which grows by one" if counter in own - others else ""


def _grown(scope: ast.AST, by: Callable[[ast.expr], bool]) -> set[str]:
    """The names that grow in a scope by values of a kind, also by such as have a name there."""
    assigned = (n for n in ast.walk(scope) if isinstance(n, ast.Assign))
    named = {k: n.value for n in assigned for t in n.targets if (k := key_of(t))}
    found = (n for n in ast.walk(scope) if isinstance(n, ast.AugAssign))
    return {
        key
        for n in found
        if isinstance(n.op, ast.Add) and by(named.get(key_of(n.value) or "", n.value))
        if (key := key_of(n.target))
    }


def _is_one(value: ast.expr) -> bool:
    return literal(value) == 1


def _may_be_of_one(project: Project) -> bool:
    """Tell whether a loader gives one example at a time, so that batches are examples."""
    loaders = loaders_in(project)
    given = ((x, argument(x.call, "batch_size", 1)) for x in loaders if not x.has_sampler)
    return any(x.batch_size == 1 or size is None for x, size in given)


def _factors(node: ast.expr) -> set[str]:
    """The names that are multiplied with each other in an expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _factors(node.left) | _factors(node.right)
    return {key_of(node) or ""} - {""}


def _length_of(node: ast.expr) -> str:
    is_length = isinstance(node, ast.Call) and key_of(node.func) == "len" and len(node.args) == 1
    return (key_of(node.args[0]) or "") if is_length and isinstance(node, ast.Call) else ""


def _counts(value: ast.expr) -> bool:
    """Tell whether a value is a number of equal elements, and no share of them."""
    calls = [n.func.attr for n in ast.walk(value)
             if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]  # fmt: skip
    is_equal = "eq" in calls or any(isinstance(n, ast.Eq) for n in ast.walk(value))
    is_share = "mean" in calls or any(isinstance(n, ast.Div) for n in ast.walk(value))
    return "sum" in calls and is_equal and not is_share


def _is_one_epoch(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and key_of(node.func) == "len" and "load" in ast.unparse(node)


_PROGRAM = """
import torch
from torch import nn

model = nn.Linear(8, {units})
{before}
for epoch in range(3):
    {top}
    for data, target in val_loader:
        output = model(data)
        pred = {pred}
        correct += {count}
    print(100 * correct / len({over}))
"""


def _program(
    pred: str = "output.argmax(1)",
    top: str = "correct = 0",
    before: str = "",
    units: int = 3,
    over: str = "val_loader.dataset",
    count: str = "(pred == target).sum().item()",
) -> Run:
    text = _PROGRAM.format(pred=pred, top=top, before=before, units=units, over=over, count=count)
    return make_run(sources={"train.py": text})


_COUNTED = """
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=32)

def accuracy(model, batches):
    hits, count = 0, 0
    for x, y in batches:
        hits += (model(x).argmax(-1) == y).sum().item()
        count += 1
    return hits / count
"""

_INDEXED = """
def mean_loss(model, loader, loss_fn):
    total, count = 0.0, 0
    for i, (x, y) in enumerate(loader):
        total += loss_fn(model(x), y).item()
        count += {step}
    return total / (count + 1)
"""

_BAG = """
import torch
from torch import nn

class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(64, 1)

    def forward(self, bag):
        scores = self.score(bag)
        return scores.argmax(dim={dim})
"""

FIRES = {
    "one unit, whatever the rows": make_run(sources={"model.py": _BAG.format(dim=-1)}),
    "counted by the index": make_run(sources={"train.py": _INDEXED.format(step="i")}),
    "over the batch": _program("output.argmax(dim=0)"),
    "over one logit": _program("torch.argmax(output, dim=1)", units=1),
    "never reset": _program(top="pass", before="correct = 0"),
    "never reset, a weighted mean": _program(
        top="pass", before="correct = 0", count="(pred == target).float().mean() * data.size(0)"
    ),
    "divided by the number of batches": _program(over="val_loader"),
    "divided by a count of batches": make_run(sources={"train.py": _COUNTED}),
}

SILENT = {
    "near miss: counted by one": make_run(sources={"train.py": _INDEXED.format(step="1")}),
    "over classes": _program(),
    "near miss: the best of a set": make_run(sources={"model.py": _BAG.format(dim=1)}),
    "near miss: both ways over similarities": _program(
        "output.argmax(dim=0)", count="(pred == target).sum() + (output.argmax(1) == target).sum()"
    ),
    "near miss: similarities that are turned": _program(
        "output.argmax(dim=0)\n        back = output.T.argmax(dim=0)"
    ),
    "near miss: one example of the batch under its name": _program(
        "0\n        output = output[0]\n        pred = output.argmax(0)"
    ),
    "near miss: steps by the epoch": _program(
        top="pass", before="correct = 0", over="val_loader", count="1"
    ),
    "near miss: examples by the epoch": _program(
        top="pass", before="correct = 0", count="data.size(0)"
    ),
    "near miss: divided by the epochs too": _program(
        top="pass", before="correct = 0", over="val_loader.dataset) / (epoch + 1"
    ),
    "near miss: divided by the size of a batch too": _program(over="val_loader) / (BATCH"),
    "near miss: set to zero in place": _program(top="correct.zero_()", before="correct = zeros(1)"),
    "near miss: one sample": _program("output[0].argmax(0)"),
    "near miss: a mean of means": _program(
        over="val_loader", count="(pred == target).float().mean().item()"
    ),
    "near miss: shares": _program(
        over="val_loader", count="(pred == target).sum().item() / len(target)"
    ),
    "near miss: batches of one": make_run(
        sources={"train.py": _COUNTED.replace("batch_size=32", "batch_size=1")}
    ),
    "near miss: examples are counted": make_run(
        sources={"train.py": _COUNTED.replace("count += 1", "count += len(y)")}
    ),
    "near miss: a mean over batches": make_run(
        sources={"train.py": _COUNTED.replace(".sum()", ".float().mean()")}
    ),
    "near miss: reset every epoch": _program(top="correct, total = 0, 0"),
}
