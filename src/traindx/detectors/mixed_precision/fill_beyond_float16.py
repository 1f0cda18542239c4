"""A float16 tensor is filled with a number that it cannot hold."""

from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.half_precision import half_overflows
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("fp16-overflow",))
def check(run: Run) -> Findings:
    """A mask writes −1e9 into scores that autocast or half weights have made float16.

    ## What it detects
    `masked_fill`, `where` or `full_like` with a finite number beyond ±65504, on a tensor that comes
    from a product under float16 autocast (also of a trainer with fp16), or from half weights.

    ## Why it matters
    "value cannot be converted to type at::Half without overflow" at the first forward pass.

    ## What to do
    `torch.finfo(scores.dtype).min`, `float("-inf")`, or scores in float32.

    ## When it is wrong
    Scores that are cast to float32 before are left alone, as is bfloat16, which holds such numbers.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in half_overflows(story):
            if found.at.node not in seen:
                seen.add(found.at.node)
                yield finding(
                    f"{found.number:g} does not fit into float16, which ends at 65504",
                    "fp16-overflow",
                    found.at,
                    cite(found.at, f"`{source_text(found.at)}` on a float16 tensor"),
                    is_symptom=True,
                )


_NET = """
import torch
from torch import nn

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


def _net(filled: str, context: str = _AUTOCAST, half: str = "") -> Run:
    text = _NET.format(filled=filled, context=context, half=half)
    return make_run(sources={"train.py": text})


FIRES = {
    "filled under autocast": _net("scores.masked_fill(mask, -1e9)"),
    "in place": _net("scores.masked_fill_(mask, value=-1e5)"),
    "chosen": _net("torch.where(mask, -1e10, scores)"),
}

SILENT = {
    "near miss: a number that fits": _net("scores.masked_fill(mask, -1e4)"),
    "near miss: minus infinity": _net('scores.masked_fill(mask, float("-inf"))'),
    "near miss: cast before": _net("scores.float().masked_fill(mask, -1e9)"),
    "near miss: bfloat16": _net(
        "scores.masked_fill(mask, -1e9)", 'torch.autocast("cuda", dtype=torch.bfloat16)'
    ),
    "near miss: the least of the type": _net(
        "scores.masked_fill(mask, torch.finfo(scores.dtype).min)"
    ),
    "near miss: no autocast": _net("scores.masked_fill(mask, -1e9)", "torch.enable_grad()"),
}
