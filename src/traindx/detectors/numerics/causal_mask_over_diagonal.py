from traindx.analysis.program.training.claims import cite, finding, program_of, source_text
from traindx.analysis.program.training.triangles import closed_masks
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("fully-masked-attention",))
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
    for found in closed_masks(program_of(run)):
        mask, use, written = found.mask, found.use, source_text(found.mask)
        if found.is_triangle:
            yield finding(
                f"`{written}` masks the diagonal too: the first position sees nothing",
                (mask, f"`{written}` begins at the diagonal, which is number 0"),
                (use, "what it marks is masked here"),
                patch=found.patch(),
            )
        else:
            claim = "The mask leaves a position nothing to see: its softmax is over an empty set"
            row, made = cite(use, "a whole row is masked here"), cite(mask, "the mask")
            yield finding(claim, row, made, at=use)


_LAYER = """
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
def attend(q, k, n):
    mask = {mask}
    return (q @ k.T).masked_fill({given}, {value}).softmax(-1)
"""
_PAIRS = """
def hardest(z, n):
    upper = torch.triu(torch.ones(n, n, dtype=torch.bool))
    return (z @ z.T).masked_fill(upper, float("-inf")).flatten().topk(5).values
"""
_OPEN = "torch.triu(torch.ones(n, n, dtype=torch.bool))"
_SHIFTED = "torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)"

_layer = template(_LAYER, "mask", path="model.py", given="causal")

_scores = template(_SCORES, "mask", path="model.py", given="mask", value="float('-inf')")

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
    "near miss: pairs, each once": script(_PAIRS, path="pairs.py"),
    "near miss: other values": _scores(_OPEN, value="0.0"),
}
