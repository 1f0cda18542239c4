from traindx.analysis.program.training.claims import each_place, finding, node_of, source_text
from traindx.analysis.program.training.flat_operations import flat_steps
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("non-differentiable-operation",))
def check(run: Run) -> Findings:
    """What a layer gives is rounded or reduced to its sign, and goes into a further layer.

    ## What it detects
    A trained layer whose output reaches the loss only through `sign`, `round`, `floor`, `ceil` or
    `heaviside`, where layers behind the step function are trained by the same loss, without a
    straight-through estimator. And one that no loss reaches but through an argmax, a comparison, a
    sample or the like.

    ## Why it matters
    The slope of a step is 0 everywhere. The layers below get no gradient through it: they keep
    their first weights, or learn from a side term alone.

    ## What to do
    Use a smooth function (tanh, sigmoid), or let the gradient pass:
    `x + (torch.sign(x) - x).detach()`.

    ## When it is wrong
    Rounding that makes indices or the corners of a grid, and code that only runs outside of
    training, are left alone, as are layers that the same term reaches otherwise, that are frozen,
    or that no optimizer holds.
    """
    found = each_place(run, flat_steps, at=node_of)
    for step in (step for step in found if step.site is not None):
        yield finding(
            f"No gradient passes `{source_text(step)}`, so layers below learn nothing through it",
            (step, "a step function, of slope 0, between two layers"),
        )


_model = template("""
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(8, 4)
        self.up = nn.Linear(4, 8)
        self.table = nn.Embedding(4, 8)

    def scaled(self, x):
        return x / x.norm()

    def look_up(self, cell):
        return self.table(cell.long())

    def below(self, x):
        return self.down(x)

    def forward(self, x):
        h = self.{below:down}(x)
        {line}
        return self.up(z)

model = Coder()
{freeze:}
optimizer = torch.optim.SGD(model.{trained:}parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
""")

FIRES = {
    "the sign": _model("z = torch.sign(h)"),
    "rounded": _model("z = h.round()"),
    "an index and nothing else": _model("z = self.table(h.argmax(-1))[..., :4]"),
    "a threshold": _model("z = x[..., :4] * (h > 0).float()"),
    "straight through, without detach": _model("z = h + (torch.round(h * 4) / 4 - h)"),
    "straight through, without detach, reversed": _model("q = h.sign(); z = q - h + h"),
    "rounded, of a method with a layer": _model("z = h.round()", "below"),
}

SILENT = {
    "smooth": _model("z = torch.tanh(h)"),
    "near miss: straight through": _model("z = h + (torch.sign(h) - h).detach()"),
    "near miss: a residual besides": _model("z = h + (torch.round(h) - x.mean())"),
    "near miss: added, not taken back": _model("z = h + (torch.round(h) + h)"),
    "near miss: only outside of training": _model(
        "z = h\n        if not self.training:\n            z = torch.sign(h)"
    ),
    "near miss: of the input, not of features": _model("z = h; shade = torch.round(x)"),
    "near miss: of a method without weights": _model("z = h.floor()", "scaled"),
    "near miss: an index, beside the features": _model(
        "c = h.floor(); z = self.look_up(c)[..., :4] + h"
    ),
    "near miss: the corner of a cell": _model("c = h.floor(); z = (h - c) * self.up(c)"),
    "near miss: a frozen layer": _model(
        "z = torch.sign(h)", freeze="model.down.requires_grad_(False)"
    ),
    "near miss: only the layer above is trained": _model("z = torch.sign(h)", trained="up."),
    "near miss: kept as a factor": _model("z = h * torch.sign(h)"),
}
