from traindx.analysis.program.training.claims import cited, each_place, finding
from traindx.analysis.program.training.empty_rows import empty_rows
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("fully-masked-attention",))
def check(run: Run) -> Findings:
    """A padding mask covers every key of a sequence of length zero.

    ## What it detects
    Scores that are filled with −inf where a mask marks padding, ahead of a softmax, or a padding
    mask of an attention layer of torch, where the mask comes from lengths that may be 0: drawn from
    0 on, or of lists that may be empty. A mask that is true for tokens where it should be true for
    padding, one that blocks padded rows as well as columns, one of a sparse random matrix, and one
    of near neighbours that leaves each row itself out.

    ## Why it matters
    The softmax of a row of −inf is NaN. One such row makes the loss NaN, and with it every weight.

    ## What to do
    Keep one key open (a start token, or `mask[:, 0] = False` for empty rows), drop empty rows, or
    set the weights of such rows to zero with `nan_to_num`.

    ## When it is wrong
    Weights that are filled or chosen by `where` afterwards are left alone, as is a mask that code
    writes into, and a fill that is large but finite.
    """
    for found in each_place(run, empty_rows, lambda found: found.event.node):
        yield finding(
            f"{found.says}: the softmax of a fully masked row is NaN",
            (found.event, "the softmax of a row of −inf is NaN"),
            *cited(found.origin, found.why),
        )


_ATTEND = """
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
_attend = template(_ATTEND, low="0", more="", fill="float('-inf')", after="")
_layer = template("""
attend = nn.MultiheadAttention(16, 2, batch_first=True)
tokens = torch.randint(1, 50, (64, 8)) * (torch.arange(8) < torch.randint({low:0}, 9, (64, 1)))
x = nn.Embedding(50, 16)(tokens)
out, _ = attend(x, x, x, key_padding_mask=tokens == 0)
""")

_NEAR = "x = x.mean(1); valid = {}"

FIRES = {
    "lengths from zero on": _attend(),
    "−inf of torch": _attend(fill="-torch.inf"),
    "an attention layer": _layer(),
    "tokens are blocked": _attend("1", "valid = ~valid"),
    "near ones without oneself": _attend(
        "1", _NEAR.format("(torch.cdist(x, x) < 0.1) & ~torch.eye(256).bool()")
    ),
    "rows without a neighbour": _attend("1", "valid = torch.rand(256, 8) < 0.1"),
}

SILENT = {
    "near miss: neighbours and oneself": _attend("1", _NEAR.format("torch.cdist(x, x) < 0.1")),
    "lengths from one on": _attend("1"),
    "near miss: rows with neighbours": _attend("1", "valid = torch.rand(256, 8) < 0.9"),
    "near miss: a finite fill": _attend(fill="-1e9"),
    "near miss: NaN is taken out": _attend(after=".nan_to_num(0.0)"),
    "near miss: one key stays open": _attend(more="valid[:, 0] = True"),
    "near miss: an attention layer, lengths from one on": _layer("1"),
}
