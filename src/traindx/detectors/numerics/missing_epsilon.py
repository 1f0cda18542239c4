from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.domain_edges import unguarded_edges
from traindx.examples import template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("unstable-operation",))
def check(run: Run) -> Findings:
    """A loss takes the logarithm of a probability, divides by a norm, or takes a root, unguarded.

    ## What it detects
    In what backward is called on, and in functions and classes named for a loss: the logarithm of a
    softmax or sigmoid, or of what is mixed from one, a division by a norm, the square root of a sum
    of squares, or an arc cosine, with nothing that keeps the argument away from the edge. In any
    forward pass: the root of `1 - x²`. The exponential of a loss, as what is minimised. Some edges
    are certain: the diagonal of distances to itself, the logarithm of a ReLU or of a masked
    softmax, a softmax that is written out without its shift, the logarithm of `1 - p`, an arc
    cosine or logarithm of what is clamped to the very edge.

    ## Why it matters
    Log of 0 is −∞, x/0 is NaN, and the gradient of a root is infinite at 0. One sample at the edge
    turns the loss, then every weight, into NaN.

    ## What to do
    `log_softmax` and `logsigmoid`; `F.normalize`; an epsilon inside the root; a clamp before acos.

    ## When it is wrong
    The edge may never be reached by the data; hence a remark, which counts once the loss is NaN.
    """
    for found in each_place(run, unguarded_edges, lambda found: found.event.node):
        what, better, _ = found.edge
        yield finding(
            f"The loss holds an operation that can give NaN: {what}",
            (found.event, f"{what}; {better}"),
            strength=Strength.STRONG if found.is_reached else Strength.MODERATE,
            is_symptom=found.is_reached,
            hint=None if found.is_reached else Strength.MODERATE,
        )


_loss = template("""
def {name:my_loss}(output, target):
    p = F.softmax(output, dim=1)
    return -({expression}).mean()
""")
_margin = template("""
class Margin(nn.Module):
    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        return {expression}
""")
_minimised = template("""
criterion = nn.CrossEntropyLoss()
for data, target in train_loader:
    optimizer.zero_grad()
    {before:}
    loss = {expression}
    loss.backward()
    optimizer.step()
""")


def _distances(root: str) -> Run:
    return _minimised(root, "e = model(data)\n    sq = e.pow(2).sum(1)")


_PAIRS = "(sq[:, None] + sq[None, :] - 2 * e @ e.t())"

FIRES = {
    "the root of distances to itself, multiplied out": _distances(
        f"{_PAIRS}.clamp(min=0).sqrt().mean()"
    ),
    "the root of distances to itself": _distances(
        "torch.sqrt(((e.unsqueeze(0) - e.unsqueeze(1)) ** 2).sum(-1)).mean()"
    ),
    "log of a mixed probability": _loss("torch.log(p * target + (1 - p) * (1 - target))"),
    "the sine of an angle": _margin("torch.sqrt(1.0 - torch.pow(cosine, 2))"),
    "the exponential of a loss": _minimised("torch.exp(criterion(model(data), target) / 2)"),
    "log of a softmax": _loss("target * torch.log(p)"),
    "log of a sigmoid": _loss("target * torch.sigmoid(output).log()"),
    "a division by a norm": _loss("output / output.norm(dim=1, keepdim=True)"),
    "softmax by hand": _minimised("torch.exp(nn.Linear(8, 3)(data)).sum(1).log().mean()"),
    "log of what a ReLU leaves": _minimised("-torch.log(torch.relu(model(data))).mean()"),
    "the entropy of what is masked": _minimised(
        "(p := model(data).masked_fill(target, float('-inf')).softmax(-1)).mul(p.log()).sum()"
    ),
    "a root under where": _minimised(
        "torch.where((z := nn.Linear(8, 1)(data)) > 0, z.sqrt(), 0.0).mean()"
    ),
    "an arc cosine at the edge": _minimised("model(data).clamp(-1, 1).acos().mean()"),
    "a root": _loss("torch.sqrt(((output - target) ** 2).sum(1))"),
}

SILENT = {
    "near miss: distances that are kept off zero": _distances(
        f"{_PAIRS}.clamp(min=1e-12).sqrt().mean()"
    ),
    "near miss: distances with an epsilon": _distances(f"({_PAIRS} + 1e-9).sqrt().mean()"),
    "near miss: torch's own distances": _distances("torch.cdist(e, e).mean()"),
    "near miss: distances to others": _distances(
        "(sq[:, None] + other - 2 * e @ others.t()).sqrt().mean()"
    ),
    "near miss: a mixed probability and an epsilon": _loss(
        "torch.log(p * target + (1 - p) * (1 - target) + 1e-7)"
    ),
    "near miss: a clamped sine": _margin("torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(1e-6, 1))"),
    "near miss: the perplexity is only shown": _minimised(
        "criterion(model(data), target); shown = torch.exp(loss)"
    ),
    "log-softmax": _loss("target * F.log_softmax(output, dim=1)"),
    "near miss: scores in bounds": _minimised(
        "torch.exp(nn.functional.normalize(nn.Linear(8, 3)(data))).sum(1).log().mean()"
    ),
    "near miss: log of one more than a ReLU": _minimised(
        "torch.log(torch.relu(model(data)) + 1).mean()"
    ),
    "near miss: with an epsilon": _loss("target * torch.log(p + 1e-8)"),
    "near miss: an arc cosine short of the edge": _minimised(
        "model(data).clamp(-1 + 1e-6, 1 - 1e-6).acos().mean()"
    ),
    "near miss: clamped": _loss("torch.acos((output * target).clamp(-0.999, 0.999))"),
    "near miss: no loss": _loss("target * torch.log(p)", "entropy_metric"),
}
