"""A causal mask hides from every position also the position itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.project import Project

CAUSE = "fully-masked-attention"
FAR = -1e3  # a score that low is as good as −inf
KEEPS = frozenset({"bool", "to", "type", "cuda", "cpu", "clone", "detach", "unsqueeze", "float"})
MASKS = frozenset({"attn_mask", "src_mask", "tgt_mask", "mask"})
TAKES_BLOCKED = re.compile(r"\bnn\.(?:modules\.\w+\.)?(?:MultiheadAttention|Transformer\w*)$")
# what puts a column or row beside a mask, or another value in its place
SHIFTS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "pad", "where", "roll"})
OTHER_DIAGONAL = frozenset({"triu", "tril", "fill_diagonal", "diagonal", "roll"})
FILLS = frozenset({"masked_fill", "masked_fill_"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """The upper triangle that blocks attention includes the diagonal.

    ## What it detects
    `torch.triu` of a square of ones or of −inf without `diagonal=1`, where it blocks: as an added
    mask of −inf, as the mask of `masked_fill` with −inf ahead of a softmax, or as the mask of an
    attention or transformer layer of torch, in which True means blocked.

    ## Why it matters
    No position sees itself, and the first one sees nothing: its softmax is over an empty set, which
    gives NaN, or zeros where torch catches it.

    ## What to do
    `torch.triu(…, diagonal=1)`.

    ## When it is wrong
    A mask in which True means allowed is right with its diagonal; one that is inverted, transposed
    or compared with 0 on its way is left alone, as is one whose use cannot be seen, that is changed
    after it was made (`fill_diagonal_`) or that gets another column.
    """
    project = project_of(run)
    for module in project.modules:
        for call, name in module.calls():
            if name.rsplit(".", 1)[-1] != "triu" and getattr(call.func, "attr", "") != "triu":
                continue
            square = _square(call, name)
            if square is None or not _has_diagonal(call, name):
                continue
            use = call if _is_minus_infinity(square) else _blocking_use(project, module, call)
            if use is not None and not _is_turned(module, call) and not _is_mended(module, call):
                yield _finding(module, call, use)


def _finding(module: Module, call: ast.Call, use: ast.AST) -> Finding:
    written = module.source(call)
    return Finding(
        claim=f"`{written}` blocks the diagonal too: the first position sees nothing",
        strength=Strength.STRONG,
        evidence=(
            module.cite(call, f"`{written}` begins at the diagonal, which is number 0"),
            *(() if use is call else (module.cite(use, "what it marks is blocked here"),)),
        ),
        shows=CAUSE,
        is_symptom=True,
        location=module.location(call),
        patch=_patch(module, call),
    )


def _patch(module: Module, call: ast.Call) -> str | None:
    given = next((k for k in call.keywords if k.arg == "diagonal"), None)
    if given is not None:
        return diff(module, replacing(given.value, "1"))
    written = module.source(call)
    has_positional = len(call.args) > (1 if _is_function(call) else 0)
    if has_positional or not written.endswith(")"):
        return None
    inside = written[:-1].rstrip().rstrip(",")
    separator = "" if inside.endswith("(") else ", "
    return diff(module, replacing(call, f"{inside}{separator}diagonal=1)"))


def _is_function(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) or key_of(call.func) in ("torch.triu", "th.triu")


def _square(call: ast.Call, name: str) -> ast.expr | None:
    """Return what the triangle is cut from, if it is a square that is the same everywhere."""
    is_method = not name.startswith("torch.") and isinstance(call.func, ast.Attribute)
    whole = call.func.value if is_method else argument(call, "input", 0)  # type: ignore[attr-defined]
    made = [
        n
        for n in ast.walk(whole or call)
        if isinstance(n, ast.Call) and (key_of(n.func) or "").endswith((".ones", ".full"))
    ]
    if whole is None or len(made) != 1 or not made[0].args:
        return None
    sides: list[ast.expr] = list(made[0].args)
    if isinstance(sides[0], (ast.Tuple, ast.List)):
        sides = sides[0].elts
    is_square = len(sides) >= 2 and ast.dump(sides[-1]) == ast.dump(sides[-2])
    return whole if is_square or _is_square_full(sides) else None


def _is_square_full(sides: list[ast.expr]) -> bool:
    return len(sides) == 3 and ast.dump(sides[0]) == ast.dump(sides[1])


def _has_diagonal(call: ast.Call, name: str) -> bool:
    position = 1 if name.startswith("torch.") else 0
    given = argument(call, "diagonal", position)
    value = 0 if given is None else literal(given)
    return isinstance(value, int) and value <= 0


def _is_minus_infinity(node: ast.AST | None) -> bool:
    texts = (ast.unparse(n) for n in ast.walk(node)) if node is not None else ()
    return any(t.replace("'", '"') in ('float("-inf")', "-inf") or t in _NAMED for t in texts)


_NAMED = ("-math.inf", "-np.inf", "-torch.inf", "-float('inf')")


def _is_turned(module: Module, call: ast.Call) -> bool:
    """Tell whether the triangle is inverted, transposed or compared where it is made."""
    node: ast.AST = call
    for above in module.enclosing(call):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.UnaryOp) or _is_other_method(above, node):
            return True
        if isinstance(above, (ast.Compare, ast.BinOp)) and not _is_one(above):
            return True
        node = above
    return False


def _is_mended(module: Module, call: ast.Call) -> bool:
    """Tell whether the mask may get another diagonal, or another column, after it was made."""
    if any(_shifts(module, n) for n in module.enclosing(call)):
        return True
    statement = module.statement_of(call)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    key = key_of(targets[0]) if len(targets) == 1 else None
    if key is None:
        return False
    scope = module.class_of(call) if key.startswith("self.") else module.function_of(call)
    held = (n for n in ast.walk(scope or module.tree) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(_is_changed(module, n) for n in held if key_of(n) == key)


def _is_changed(module: Module, held: ast.expr) -> bool:
    """Tell whether a place where a mask is used writes to it, or takes it at another diagonal."""
    node: ast.AST = held
    for above in module.enclosing(held):
        if isinstance(above, ast.stmt):
            return isinstance(above, ast.AugAssign) and above.target is node
        if isinstance(above, ast.Subscript) and above.value is node:
            if not isinstance(above.ctx, ast.Load) or _cuts_the_front(above.slice):
                return True
        elif isinstance(above, ast.Attribute):
            if _is_open_again(module, above):
                return True
        elif isinstance(above, ast.BinOp) and "eye(" in ast.unparse(above):
            return True
        elif isinstance(above, ast.Call) and above.func is not node:
            return _shifts(module, above) or _fills_in_place(module, above, node)
        node = above
    return False


def _is_open_again(module: Module, method: ast.Attribute) -> bool:
    """Tell whether a method of a mask may open its diagonal; to fill −inf in opens nothing."""
    if method.attr in FILLS:
        call = module.parents.get(method)
        value = argument(call, "value", 1) if isinstance(call, ast.Call) else None
        return literal(value) in (0, False)
    return method.attr.endswith("_") or method.attr in OTHER_DIAGONAL


def _fills_in_place(module: Module, call: ast.Call, mask: ast.AST) -> bool:
    """`torch.diagonal(mask).zero_()`, `np.fill_diagonal(mask, 0)`."""
    name = (module.qualified(call.func) or "").rsplit(".", 1)[-1]
    return "diagonal" in name and mask in call.args


def _cuts_the_front(index: ast.expr) -> bool:
    """`mask[1:]` and `mask[:, 1:]` move the diagonal; `mask[:n, :n]` does not."""
    slices = (n for n in ast.walk(index) if isinstance(n, ast.Slice))
    return any(s.lower is not None and literal(s.lower) != 0 for s in slices)


def _shifts(module: Module, node: ast.AST) -> bool:
    name = module.qualified(node.func) or "" if isinstance(node, ast.Call) else ""
    return name.rsplit(".", 1)[-1] in SHIFTS


def _is_other_method(above: ast.AST, node: ast.AST) -> bool:
    is_method = isinstance(above, ast.Attribute) and above.value is node
    return is_method and above.attr not in (*KEEPS, *FILLS)  # type: ignore[attr-defined]


def _is_one(node: ast.Compare | ast.BinOp) -> bool:
    """`mask == 1` and `mask > 0` say what the mask says, and a factor does not turn it."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mult)
    pair = (type(node.ops[0]), literal(node.comparators[0]))
    return pair in ((ast.Eq, 1), (ast.Gt, 0), (ast.NotEq, 0), (ast.Eq, True))


def _blocking_use(project: Project, module: Module, call: ast.Call) -> ast.AST | None:
    statement = module.statement_of(call)
    scope = module.function_of(call) or module.tree
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        key = key_of(statement.targets[0])
        if key is None or key.startswith("self."):
            return None
        held = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == key]
        stored = [n for n in held if isinstance(n.ctx, ast.Store)]
        uses = [_blocked_by(project, module, n) for n in held if isinstance(n.ctx, ast.Load)]
        if len(stored) != 1:
            return None
        return next((u for u in uses if u is not None), None)
    return _blocked_by(project, module, call)


def _blocked_by(project: Project, module: Module, node: ast.expr) -> ast.AST | None:
    """Return the call in which a mask blocks what it marks, if it is handed over as it is."""
    mask: ast.AST = node
    for above in module.enclosing(node):
        if isinstance(above, ast.Call):
            if above.func is mask:
                mask = above
                continue
            return above if _blocks(project, module, above, mask) else None
        is_kept = isinstance(above, ast.Attribute) and above.attr in KEEPS
        is_part = isinstance(above, ast.Subscript) and above.value is mask
        is_same = isinstance(above, ast.Compare) and _is_one(above)
        if not (is_kept or is_part or is_same or isinstance(above, ast.keyword)):
            return None
        mask = above
    return None


def _blocks(project: Project, module: Module, call: ast.Call, mask: ast.AST) -> bool:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if last in FILLS:
        value = argument(call, "value", 1)
        number = literal(value)
        is_far = isinstance(number, (int, float)) and number <= FAR
        is_mask = argument(call, "mask", 0) is mask
        # what is not normalised may be a choice of pairs, each once and none with itself
        scope = module.function_of(call) or module.tree
        is_attention = "softmax" in ast.unparse(scope)
        return is_mask and is_attention and (is_far or _is_minus_infinity(value))
    if not isinstance(mask, ast.keyword) or mask.arg not in MASKS:
        return False
    scope = module.function_of(call) or module.tree
    made = project.lookup(module, scope, key_of(call.func) or "")
    names = [module.qualified(v.func) or "" for v in made if isinstance(v, ast.Call)]
    return bool(names) and all(TAKES_BLOCKED.search(n) for n in names)


_LAYER = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, x):
        n = x.size(0)
        causal = {mask}
        return self.attention(x, x, x, attn_mask={given})[0]
"""
_SCORES = """
import torch

def attend(q, k, n):
    mask = {mask}
    return (q @ k.T).masked_fill({given}, {value}).softmax(-1)
"""
_PAIRS = """
import torch

def hardest(z, n):
    upper = torch.triu(torch.ones(n, n, dtype=torch.bool))
    return (z @ z.T).masked_fill(upper, float("-inf")).flatten().topk(5).values
"""
_OPEN = "torch.triu(torch.ones(n, n, dtype=torch.bool))"
_SHIFTED = "torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)"


def _layer(mask: str, given: str = "causal") -> Run:
    return make_run(sources={"model.py": _LAYER.format(mask=mask, given=given)})


def _scores(mask: str, given: str = "mask", value: str = "float('-inf')") -> Run:
    return make_run(sources={"model.py": _SCORES.format(mask=mask, given=given, value=value)})


FIRES = {
    "the mask of a layer": _layer(_OPEN),
    "a diagonal of 0": _layer("torch.ones(n, n).triu(diagonal=0).bool()"),
    "added to the scores": _layer("torch.triu(torch.full((n, n), float('-inf')))"),
    "filled in": _scores(_OPEN),
    "made of −inf in place": _scores(
        "torch.triu(torch.ones(n, n)); mask.masked_fill_(mask == 1, float('-inf'))", "mask", "-1e9"
    ),
    "filled in as a number": _scores("torch.triu(torch.ones(n, n))", "mask == 1", "-1e9"),
}

_CLEARED = _OPEN + "\n        causal.fill_diagonal_(False)"
_ADDED = "torch.triu(torch.full((n, n), float('-inf')))"

SILENT = {
    "above the diagonal": _layer(_SHIFTED),
    "near miss: the diagonal is cleared afterwards": _layer(_CLEARED),
    "near miss: −inf, and the diagonal is set afterwards": _layer(
        _ADDED + "\n        causal[range(n), range(n)] = 0.0"
    ),
    "near miss: −inf, and the diagonal is filled": _layer(_ADDED, "causal.masked_fill(own, 0.0)"),
    "near miss: −inf, and a diagonal further up": _layer(_ADDED, "causal.triu(1)"),
    "near miss: −inf, with a column that all may see": _layer(f"F.pad({_ADDED}, (1, 0))"),
    "near miss: −inf above the diagonal": _layer("torch.full((n, n), float('-inf')).triu(1)"),
    "near miss: what is allowed, transposed": _layer(f"{_OPEN}.transpose(0, 1)"),
    "near miss: inverted": _layer(_OPEN, "~causal"),
    "near miss: zeros are blocked": _scores("torch.triu(torch.ones(n, n)).T", "mask == 0"),
    "near miss: no square": _scores("torch.triu(torch.ones(n, n + 3))"),
    "near miss: pairs, each once": make_run(sources={"pairs.py": _PAIRS}),
    "near miss: other values": _scores(_OPEN, value="0.0"),
}
