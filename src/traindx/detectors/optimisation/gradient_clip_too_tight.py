from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.gradient_bounds import (
    tight_bounds,
)
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("gradient-clipping-too-tight",))
def check(run: Run) -> Findings:
    """The bound on gradients times the learning rate is too small for any progress.

    ## What it detects
    A clip of the norm or of the values of gradients, by torch, by hand or by a trainer, whose bound
    times the learning rate of SGD (with momentum, its sum) leaves steps under 1e-4; or a bound near
    the epsilon of Adam, whose steps do not depend on the size of gradients otherwise.

    ## Why it matters
    Every step is cut to the same tiny length: the loss falls a little or not at all.

    ## What to do
    A norm of 0.5 to 1 is usual; log the norm before the clip and set the bound near its median.

    ## When it is wrong
    A rate that is raised to match, as of normalised gradient descent, is taken into account.
    """
    for bound in each_place(run, tight_bounds, at=lambda bound: bound.at.node):
        yield finding(
            f"Gradients are clipped to {bound.limit:g}: steps are too small to train",
            (bound.at, f"no gradient is larger than {bound.limit:g} behind this"),
            is_symptom=False,
        )


_LOOP = """
model = nn.Linear(8, 2)
optimizer = torch.optim.{optimizer}
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    {clip}
    optimizer.step()
"""
_SGD = "SGD(model.parameters(), lr=0.01)"

_loop = template(_LOOP, "clip", optimizer=_SGD)

_NORM = "nn.utils.clip_grad_norm_(model.parameters(), {})"
_BY_HAND = """norm = sum(p.grad.pow(2).sum() for p in model.parameters()).sqrt()
    for p in model.parameters():
        p.grad.mul_({} / norm)"""
_lightning = template("""
import lightning as L

class Net(L.LightningModule):
    def training_step(self, batch, i):
        return self.net(batch[0]).sub(batch[1]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

L.Trainer(gradient_clip_val={limit}).fit(Net(), loader)
""")

FIRES = {
    "the norm": _loop(_NORM.format("1e-4")),
    "values": _loop("nn.utils.clip_grad_value_(model.parameters(), clip_value=1e-5)"),
    "by hand": _loop(_BY_HAND.format("0.0005")),
    "a trainer's setting": _lightning("1e-4"),
    "near the epsilon of Adam": _loop(_NORM.format("1e-8"), "Adam(model.parameters())"),
}

SILENT = {
    "a usual bound": _loop(_NORM.format("1.0")),
    "near miss: a small bound with Adam": _loop(_NORM.format("1e-3"), "Adam(model.parameters())"),
    "near miss: a rate to match": _loop(_NORM.format("1e-3"), "SGD(model.parameters(), lr=100.0)"),
    "near miss: a rate that is not in sight": _loop(
        _NORM.format("1e-4"), "SGD(model.parameters(), lr=rate)"
    ),
    "near miss: by hand, to a usual norm": _loop(_BY_HAND.format("1.0")),
    "a trainer's usual setting": _lightning("0.5"),
}
