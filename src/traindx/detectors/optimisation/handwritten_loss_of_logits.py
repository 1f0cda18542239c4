from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.overlap_scores import raw_overlaps
from traindx.analysis.program.training.raw_logarithms import raw_logarithms
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("loss-expects-probabilities",))
def check(run: Run) -> Findings:
    """A Dice, focal or cross-entropy loss written by hand takes logits for probabilities.

    ## What it detects
    A loss that divides the sum of the product of prediction and target by the areas of both (Dice,
    IoU, Tversky), or that takes log(p) and log(1 - p) (cross-entropy, focal loss), where the
    prediction comes straight from a layer, without sigmoid or softmax.

    ## Why it matters
    The areas of raw scores may be negative or cancel each other: the quotient has poles and no
    minimum at the target. The logarithm of a raw score is NaN, or clamped, without a gradient.

    ## What to do
    `torch.sigmoid` (or softmax) before the loss is computed. A BCEWithLogitsLoss beside it keeps
    taking the logits.

    ## When it is wrong
    Scores that are squashed out of sight are not followed, and nothing is said.
    """
    for event, made in each_place(run, raw_overlaps, at=lambda pair: pair[0].node):
        says = "both areas are counts only where every element is between 0 and 1"
        yield _finding("The overlap of a target with raw scores is taken", event, made, says)
    for event, made in each_place(run, raw_logarithms, at=lambda pair: pair[0].node):
        says = "log(p) and log(1 - p) are finite only between 0 and 1"
        yield _finding("The cross-entropy of raw scores is computed by hand", event, made, says)


def _finding(claim: str, event: ProgramEvent, made: Value, says: str) -> Finding:
    return finding(
        f"{claim}, which needs probabilities",
        (event, says),
        (made, "the scores, without a sigmoid or softmax"),
    )


_overlap = template("""
net = nn.Conv2d(1, 1, 3, padding=1)

def overlap(seg, mask):
    both = (seg * mask).sum((1, 2, 3))
    return {divided}

for image, mask in loader:
    loss = {loss:overlap(net(image), mask).mean()}
    loss.backward()
""")

_DICE = "1 - (2 * both + 1) / (seg.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)"

_focal = template("""
net = nn.Linear(8, 1)

def focal(p, y):
    p = p.clamp(1e-6, 1 - 1e-6)
    return -(y * (1 - p) ** 2 * torch.log(p) + (1 - y) * p ** 2 * torch.log(1 - p)).mean()

for x, y in loader:
    focal({given}, y).backward()
""")

FIRES = {
    "focal loss of logits": _focal("net(x).squeeze(1)"),
    "Dice of logits": _overlap(_DICE),
    "Tversky index of logits": _overlap(
        "1 - both / (both + 0.3 * (seg * (1 - mask)).sum((1, 2, 3))"
        " + 0.7 * ((1 - seg) * mask).sum((1, 2, 3)) + 1e-6)"
    ),
}

SILENT = {
    "near miss: focal loss of probabilities": _focal("net(x).squeeze(1).sigmoid()"),
    "near miss: out of sight": _focal("squash(net(x))"),
    "near miss: Dice of probabilities": _overlap(
        _DICE, "overlap(net(image).sigmoid(), mask).sum()"
    ),
    "near miss: a mean under a mask": _overlap("both / (mask.sum((1, 2, 3)) + 1)"),
    "near miss: the share of a projection": _overlap("both / (mask ** 2).sum((1, 2, 3)) + 1"),
    "near miss: a cosine": _overlap("both / (seg.norm() * mask.norm())"),
}
