"""A causal mask hides from every position also the position itself."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Items, Result, Value, constant
from traindx.analysis.program.training.claims import cite, finding, replace, source_text
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.mask_matrices import blocked_rows, mask_uses
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import (
    Operation,
    is_in_place,
    operation_name,
    operation_of,
)
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "fully-masked-attention"
FAR = -1e3  # a score that low is as good as −inf
MASKS = ("attn_mask", "src_mask", "tgt_mask", "mask")
SAME_AS_ONE = {"eq": (1, True), "ne": (0, False), "gt": (0, False)}


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A mask of attention leaves a position nothing to see: its diagonal is masked too.

    ## What it detects
    A mask that depends on the positions alone (triangles, comparisons of `arange`) and that blocks
    a whole row: `torch.triu` of ones or of −inf without `diagonal=1`, `torch.tril` with
    `diagonal=-1`, `i > j` where `i >= j` is meant. It is added to the scores of a softmax as −inf,
    chooses what is filled with −inf, or is the mask of an attention layer of torch, in which True
    means blocked, or of `scaled_dot_product_attention`, in which it means allowed.

    ## Why it matters
    No position sees itself, and the first one sees nothing: its softmax is over an empty set, which
    gives NaN, or zeros where torch catches it.

    ## What to do
    `torch.triu(…, diagonal=1)`; `~mask` where True should have meant allowed.

    ## When it is wrong
    A mask that depends on the data is left alone, as is one whose use cannot be seen, that is
    changed after it was made (`fill_diagonal_`) or that gets another column.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            for mask in _blocking(event):
                triangle = _triangle(mask)
                if triangle is None or triangle.site is None or triangle.site.node in seen:
                    continue
                if not _is_changed(story, triangle):
                    seen.add(triangle.site.node)
                    yield _finding(triangle, event)
            if event.node not in seen:
                found = _closed(story, event)
                if found is not None and found.site is not None and found.site.node not in seen:
                    seen.update((event.node, found.site.node))
                    yield _closed_finding(found, event)


def _closed(story: Story, event: ProgramEvent) -> Result | None:
    """Return a mask under which a position sees nothing, where it is used so."""
    for use in mask_uses(event):
        made = blocked_rows(use)
        if made and not any(_is_changed(story, tensor) for tensor in made):
            return made[0]
    return None


def _closed_finding(mask: Result, use: ProgramEvent) -> Finding:
    return finding(
        "The mask leaves a position nothing to see: its softmax is over an empty set",
        CAUSE,
        use,
        cite(use, "a whole row is masked here"),
        cite(mask, "the mask"),
        is_symptom=True,
    )


def _blocking(event: ProgramEvent) -> Iterator[Value]:
    """The masks that block what they mark in an event: of a softmax, of an attention layer."""
    layer = event.receiver
    if event.name == "()" and isinstance(layer, Result) and layer.maker.startswith("torch.nn."):
        kind = layer.maker.rsplit(".", 1)[-1]
        if kind == "MultiheadAttention" or kind.startswith("Transformer"):
            yield from (event.kwargs[name] for name in MASKS if name in event.kwargs)
            return
    operation = operation_of(event.result)
    if operation is None or operation.name not in ("softmax", "log_softmax"):
        return
    for scores in same_numbers(operation.operands[0]) if operation.operands else ():
        yield from _masks_of(operation_of(scores))


def _masks_of(scores: Operation | None) -> Iterator[Value]:
    """What is filled into scores or added to them."""
    if scores is None:
        return
    if scores.name == "masked_fill" and len(scores.operands) > 2:
        value = number_of(scores.operands[2])
        if value is not None and value <= FAR:
            yield scores.operands[1]
    elif scores.name == "add":
        yield from (v for v in scores.operands if _is_far(operation_of(_plain(v))))


def _plain(value: Value) -> Value:
    """The value behind moves, casts, and comparisons that say what a mask says."""
    for _ in range(12):
        value = next(iter(same_numbers(value)), value)
        operation = operation_of(value)
        if operation is None:
            return value
        if operation.name == "bool":
            value = operation.operands[0]
        elif operation.name == "mul":
            value = next((v for v in operation.operands if isinstance(v, Result)), value)
        elif operation.name in SAME_AS_ONE and len(operation.operands) == 2:
            if constant(operation.operands[1]) not in SAME_AS_ONE[operation.name]:
                return value
            value = operation.operands[0]
        else:
            return value
    return value


def _is_far(operation: Operation | None) -> bool:
    """Tell whether a triangle is one of −inf."""
    made = None if operation is None or not operation.operands else operation.operands[0]
    square = operation_of(made)
    if square is None or square.name != "full" or len(square.operands) < 2:
        return False
    value = number_of(square.operands[1])
    return value is not None and value <= FAR


def _triangle(mask: Value) -> Result | None:
    """The upper triangle with its diagonal that a mask is, as it is."""
    moved = [operation_of(v) for v in _moves(mask)]
    if any(m is not None and m.name in ("transpose", "t", "permute", "T") for m in moved):
        return None
    value = _plain(mask)
    operation = operation_of(value)
    if operation is None or operation.name != "triu" or not isinstance(value, Result):
        return None
    given = operation.settings.get("diagonal", next(iter(operation.operands[1:]), None))
    number = 0 if given is None else constant(given)
    is_whole = isinstance(number, int) and number <= 0
    return value if is_whole and operation.operands and _is_square(operation.operands[0]) else None


def _moves(value: Value) -> Iterator[Value]:
    for _ in range(12):
        yield value
        operation = operation_of(value)
        if operation is None or not operation.operands:
            return
        value = operation.operands[0]


def _is_square(value: Value) -> bool:
    """Tell whether a tensor is the same everywhere, with sides that are one value."""
    operation = operation_of(next(iter(same_numbers(value)), value))
    if operation is None or operation.name not in ("ones", "full"):
        return False
    sides = list(operation.operands)
    if sides and isinstance(sides[0], Items):
        sides = sides[0].members
    elif operation.name == "full":
        return False
    return len(sides) >= 2 and _is_same(sides[-1], sides[-2])


def _is_same(first: Value, second: Value) -> bool:
    known = constant(first)
    if first is second or (known is not None and known == constant(second)):
        return True
    if not isinstance(first, Result) or not isinstance(second, Result):
        return False
    pairs = zip(first.inputs, second.inputs, strict=False)
    is_alike = first.maker == second.maker and len(first.inputs) == len(second.inputs)
    return is_alike and first.maker != "()" and all(_is_same(a, b) for a, b in pairs)


def _is_changed(story: Story, triangle: Result) -> bool:
    """Tell whether a mask may get another diagonal after it was made; −inf opens nothing."""
    for event in story.events:
        changed = event.receiver if event.receiver is not None else next(iter(event.args), None)
        if changed is None or not any(v is triangle for v in _moves(changed)):
            continue
        name = operation_name(event.name)
        if event.act is Form.STORE or "diagonal" in name:
            return True
        if is_in_place(event.name) and not (name == "masked_fill" and _fills_far(event)):
            return True
    return False


def _fills_far(event: ProgramEvent) -> bool:
    value = number_of(event.args[1]) if len(event.args) > 1 else None
    return value is not None and value <= FAR


def _finding(triangle: Result, use: ProgramEvent) -> Finding:
    written = source_text(triangle)
    return finding(
        f"`{written}` masks the diagonal too: the first position sees nothing",
        CAUSE,
        triangle,
        cite(triangle, f"`{written}` begins at the diagonal, which is number 0"),
        cite(use, "what it marks is masked here"),
        is_symptom=True,
        patch=_patch(triangle, written),
    )


def _patch(triangle: Result, written: str) -> str | None:
    given = triangle.kwargs.get("diagonal")
    if given is not None and given.site is not None:
        return replace(given, "1")
    is_positional = len(triangle.args) > (1 if triangle.receiver is None else 0)
    if given is not None or is_positional or not written.endswith(")"):
        return None
    inside = written[:-1].rstrip().rstrip(",")
    separator = "" if inside.endswith("(") else ", "
    return replace(triangle, f"{inside}{separator}diagonal=1)")


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
    "what is allowed, where True blocks": _layer(f"{_OPEN}.transpose(0, 1)"),
    "a lower triangle without its diagonal": _scores(
        "torch.tril(torch.ones(n, n), diagonal=-1)", "mask == 0"
    ),
    "earlier positions alone": _scores(
        "torch.arange(n)[None, :] < torch.arange(n)[:, None]", "~mask"
    ),
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
    "near miss: a lower triangle": _scores("torch.tril(torch.ones(n, n))", "mask == 0"),
    "near miss: later positions": _scores("torch.arange(n)[None, :] > torch.arange(n)[:, None]"),
    "near miss: a position itself": _scores("torch.eye(n, dtype=torch.bool)"),
    "above the diagonal": _layer(_SHIFTED),
    "near miss: the diagonal is cleared afterwards": _layer(_CLEARED),
    "near miss: −inf, and the diagonal is set afterwards": _layer(
        _ADDED + "\n        causal[range(n), range(n)] = 0.0"
    ),
    "near miss: −inf, and the diagonal is filled": _layer(_ADDED, "causal.masked_fill(own, 0.0)"),
    "near miss: −inf, and a diagonal further up": _layer(_ADDED, "causal.triu(1)"),
    "near miss: −inf, with a column that all may see": _layer(f"F.pad({_ADDED}, (1, 0))"),
    "near miss: −inf above the diagonal": _layer("torch.full((n, n), float('-inf')).triu(1)"),
    "near miss: what is allowed, transposed and inverted": _layer(
        f"{_OPEN}.transpose(0, 1)", "~causal"
    ),
    "near miss: inverted": _layer(_OPEN, "~causal"),
    "near miss: zeros are blocked": _scores("torch.triu(torch.ones(n, n)).T", "mask == 0"),
    "near miss: no square": _scores("torch.triu(torch.ones(n, n + 3))"),
    "near miss: pairs, each once": make_run(sources={"pairs.py": _PAIRS}),
    "near miss: other values": _scores(_OPEN, value="0.0"),
}
