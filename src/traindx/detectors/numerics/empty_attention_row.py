"""Attention over a sequence that may be empty: every key of it is masked."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.facts.emptiness import empty_length
from traindx.analysis.program.training.facts.mask_polarity import (
    closes_padded_rows,
    marks_tokens,
    random_empty_rows,
)
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "fully-masked-attention"
MASKS = ("key_padding_mask", "src_key_padding_mask", "memory_key_padding_mask")
# what takes NaN out of the weights again
MENDED = frozenset({"nan_to_num", "masked_fill", "where", "isnan", "nan_to_num_"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A padding mask covers every key of a sequence of length zero.

    ## What it detects
    Scores that are filled with −inf where a mask marks padding, ahead of a softmax, or a padding
    mask of an attention layer of torch, where the mask comes from lengths that may be 0: drawn from
    0 on, or of lists that may be empty. A mask that is true for tokens where it should be true for
    padding, one that blocks padded rows as well as columns, and one of a sparse random matrix.

    ## Why it matters
    The softmax of a row of −inf is NaN. One such row makes the loss NaN, and with it every weight.

    ## What to do
    Keep one key open (a start token, or `mask[:, 0] = False` for empty rows), drop empty rows, or
    set the weights of such rows to zero with `nan_to_num`.

    ## When it is wrong
    Weights that are filled or chosen by `where` afterwards are left alone, as is a mask that code
    writes into, and a fill that is large but finite.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            for mask in _masks(event):
                found = _closed(story, mask)
                if found is None or event.node in seen or _is_mended(story, event):
                    continue
                seen.add(event.node)
                yield _finding(event, *found)


def _closed(story: Story, mask: Value) -> tuple[str, str, Value] | None:
    """Return why a mask leaves rows nothing to see, and where that comes from."""
    length = empty_length(story, mask)
    if length is not None:
        return "An empty sequence masks every key of its row", "a length may be 0 here", length
    if marks_tokens(story, mask):
        says = "The mask blocks tokens and leaves the padding: a row without padding is all blocked"
        return says, "true for tokens, which it should be for padding", mask
    if closes_padded_rows(mask):
        return "The mask blocks the rows of padding too", "along both dimensions", mask
    sparse = random_empty_rows(mask)
    if sparse is not None:
        return "Rows of the mask have no key by chance", "some rows are empty", sparse
    return None


def _masks(event: ProgramEvent) -> Iterator[Value]:
    """The masks that an event blocks keys with."""
    kind = layer_kind(event.receiver) if event.name == "()" else ""
    if kind == "MultiheadAttention" or kind.startswith("Transformer"):
        yield from (event.kwargs[name] for name in MASKS if name in event.kwargs)
        return
    operation = operation_of(event.result)
    if operation is None or operation.name != "softmax" or not operation.operands:
        return
    for scores in same_numbers(operation.operands[0]):
        filled = operation_of(scores)
        is_filled = filled is not None and filled.name == "masked_fill"
        if filled is None or not is_filled or len(filled.operands) < 3:
            continue
        if number_of(filled.operands[2]) == float("-inf"):
            yield filled.operands[1]


def _is_mended(story: Story, event: ProgramEvent) -> bool:
    if not isinstance(event.result, Result):
        return True
    users = (operation_of(user) for user in story.flow.onward(event.result))
    return any(u is not None and u.name in MENDED for u in users)


def _finding(event: ProgramEvent, says: str, why: str, origin: Value) -> Finding:
    made = (cite(origin, why),) if origin.site is not None else ()
    return finding(
        f"{says}: the softmax over it is NaN",
        CAUSE,
        event,
        cite(event, "the softmax of a row of −inf is NaN"),
        *made,
        is_symptom=True,
    )


_ATTEND = """
import torch
from torch import nn

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(16, 1), nn.Linear(16, 2)

    def forward(self, x, valid):
        scores = self.score(x).squeeze(-1).masked_fill(~valid, {fill})
        weights = torch.softmax(scores, -1){after}
        return self.out((weights.unsqueeze(-1) * x).sum(1))

lengths = torch.randint({low}, 9, (256,))
x, y = torch.randn(256, 8, 16), torch.randint(0, 2, (256,))
valid = torch.arange(8)[None] < lengths[:, None]
{more}
model = Pool()
optimizer = torch.optim.Adam(model.parameters())
loss = nn.functional.cross_entropy(model(x, valid), y)
loss.backward()
optimizer.step()
"""
_LAYER = """
import torch
from torch import nn

attend = nn.MultiheadAttention(16, 2, batch_first=True)
tokens = torch.randint(1, 50, (64, 8)) * (torch.arange(8) < torch.randint({low}, 9, (64, 1)))
x = nn.Embedding(50, 16)(tokens)
out, _ = attend(x, x, x, key_padding_mask=tokens == 0)
"""


def _attend(low: int = 0, fill: str = "float('-inf')", after: str = "", more: str = "") -> Run:
    text = _ATTEND.format(low=low, fill=fill, after=after, more=more)
    return make_run(sources={"train.py": text})


FIRES = {
    "lengths from zero on": _attend(),
    "−inf of torch": _attend(fill="-torch.inf"),
    "an attention layer": make_run(sources={"train.py": _LAYER.format(low=0)}),
    "tokens are blocked": _attend(low=1, more="valid = ~valid"),
    "rows without a neighbour": _attend(low=1, more="valid = torch.rand(256, 8) < 0.1"),
}

SILENT = {
    "lengths from one on": _attend(low=1),
    "near miss: rows with neighbours": _attend(low=1, more="valid = torch.rand(256, 8) < 0.9"),
    "near miss: a finite fill": _attend(fill="-1e9"),
    "near miss: NaN is taken out": _attend(after=".nan_to_num(0.0)"),
    "near miss: one key stays open": _attend(more="valid[:, 0] = True"),
    "near miss: an attention layer, lengths from one on": make_run(
        sources={"train.py": _LAYER.format(low=1)}
    ),
}
