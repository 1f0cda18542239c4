from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.facts.half_overflows import half_overflows
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("fp16-overflow",))
def check(run: Run) -> Findings:
    """A float16 tensor gets numbers beyond 65504: an exponential, or the constant of a mask.

    ## What it detects
    The exponential of float16 scores whose bound is in sight: cosines, probabilities or clamped
    values over a temperature (`exp(cos / 0.07)` reaches 1.6 million). And `masked_fill(mask, -1e9)`
    or `where` of a float16 tensor, also of one that autocast has made so.

    ## Why it matters
    float16 ends at 65504. The exponential is infinite, inf / inf is NaN, and the loss is NaN while
    the same code runs in float32. The constant raises an error.

    ## What to do
    `log_softmax` or `logsumexp` of float32 scores (`scores.float()`); `torch.finfo(x.dtype).min`
    for a mask.

    ## When it is wrong
    Scores that never come near their bound stay finite. Under autocast torch computes exponentials
    in float32; such are left alone.
    """
    for found in each_place(run, half_overflows, lambda found: found.event.node):
        what = f"{'reaches' if found.is_exponential else 'writes'} {found.number:.2g}"
        yield finding(
            f"`{source_text(found.event)}` {what} in float16, which ends at 65504",
            (found.event, what),
        )


_scores = template("""
net = nn.Linear(8, 8){half:.half()}
x = torch.randn(4, 8).half()
a = {made}
{after}
""")

_COSINES = "F.normalize(net(x), dim=-1) @ F.normalize(net(x), dim=-1).T"

_NET = """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(32, 1), nn.Linear(32, 2)

    def forward(self, x, mask):
        scores = self.score(x).squeeze(-1) / 32 ** 0.5
        scores = {filled}
        return self.out((scores.softmax(-1).unsqueeze(-1) * x).sum(1))

model = Pool().cuda(){half}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for x, mask, y in loader:
    optimizer.zero_grad()
    with {context}:
        loss = nn.functional.cross_entropy(model(x.cuda(), mask.cuda()), y.cuda())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
_AUTOCAST = 'torch.autocast("cuda", dtype=torch.float16)'
_net = template(_NET, "filled", context=_AUTOCAST, half="")

FIRES = {
    "filled under autocast": _net("scores.masked_fill(mask, -1e9)"),
    "in place": _net("scores.masked_fill_(mask, value=-1e5)"),
    "chosen": _net("torch.where(mask, -1e10, scores)"),
    "cosines over a temperature": _scores(_COSINES, "torch.exp(a / 0.07)"),
    "probabilities times a scale": _scores("net(x).softmax(-1)", "(a * 20).exp()"),
    "the constant of a mask": _scores("net(x)", "a.masked_fill(a > 0, -1e9)"),
}

SILENT = {
    "near miss: a number that fits": _net("scores.masked_fill(mask, -1e4)"),
    "near miss: minus infinity under autocast": _net('scores.masked_fill(mask, float("-inf"))'),
    "near miss: cast before": _net("scores.float().masked_fill(mask, -1e9)"),
    "near miss: bfloat16": _net(
        "scores.masked_fill(mask, -1e9)", 'torch.autocast("cuda", dtype=torch.bfloat16)'
    ),
    "near miss: the least of the type": _net(
        "scores.masked_fill(mask, torch.finfo(scores.dtype).min)"
    ),
    "near miss: no autocast": _net("scores.masked_fill(mask, -1e9)", "torch.enable_grad()"),
    "near miss: in float32": _scores(_COSINES, "torch.exp(a.float() / 0.07)"),
    "near miss: a mild temperature": _scores(_COSINES, "torch.exp(a / 0.1)"),
    "near miss: a model in float32": _scores(
        "F.normalize(net(x.float())) @ F.normalize(net(x.float())).T", "torch.exp(a / 0.07)", ""
    ),
    "near miss: scores without a bound": _scores("net(x)", "torch.exp(a / 0.07)"),
    "near miss: minus infinity": _scores("net(x)", "a.masked_fill(a > 0, float('-inf'))"),
}
