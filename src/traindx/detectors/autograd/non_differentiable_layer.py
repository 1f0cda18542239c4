"""A model passes its own features through a step function."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.values import (
    Answer,
    Part,
    Result,
    Value,
    constant,
    depends_on,
)
from traindx.analysis.program.training.acts import Do, model_of
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.gradients import (
    Cut,
    cuts_before,
    history,
    runs_behind,
    runs_reached,
    terms_of,
)
from traindx.analysis.program.training.operations import operation_name, operation_of
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.severance import flat_layers
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

STEPS = frozenset({"sign", "sgn", "round", "floor", "ceil", "heaviside", "trunc"})


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
    seen: set[object] = set()
    for story in program_of(run).stories:
        for cut, _ in flat_layers(story):
            if isinstance(cut, Result) and cut.site is not None and cut.site.node not in seen:
                seen.add(cut.site.node)
                yield _finding(cut)
        losses = [d.subject for d in story.does(Do.BACKWARD) if d.subject is not None]
        for term in (t for loss in losses for t in terms_of(loss)):
            runs = runs_reached(term)
            reached = [r.receiver for r in runs]
            for step in _steps(term):
                if step.site is None or step.site.node in seen:
                    continue
                behind = runs_behind(step)
                layer = behind[0].receiver if behind else None
                if layer is None or any(layer is r for r in reached):
                    continue
                if not any(depends_on(a, step) for r in runs for a in r.args):
                    continue
                if _is_trained(story, layer):
                    seen.add(step.site.node)
                    yield _finding(step)


def _steps(loss: Value) -> Iterator[Result]:
    """The step functions at which the history of a loss ends, where a layer takes the result."""
    indices = {id(v) for u in history(loss) for v in _indices(u)}
    for how, cut in cuts_before(loss):
        is_step = isinstance(cut, Result) and operation_name(cut.maker) in STEPS
        if how is Cut.FLAT and is_step and id(cut) not in indices and isinstance(cut, Result):
            yield cut


def _indices(value: Value) -> tuple[Value, ...]:
    """What a value takes as an index: that has no slope by its nature."""
    operation = operation_of(value)
    if operation is None or operation.name not in ("embedding", "gather", "index_select"):
        return ()
    return operation.operands


def _is_trained(story: Story, layer: Value) -> bool:
    """Tell whether a layer is an optimizer's, and nothing freezes it."""
    optimizers = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    if not any(owns(o, layer) is Answer.YES for o in optimizers):
        return False
    for event in story.events:
        is_call = event.name == ".requires_grad_" and event.args
        is_store = event.act is Form.STORE and event.name == "requires_grad"
        if (is_call or is_store) and constant(event.args[0]) is False:
            owner = event.receiver
            if isinstance(owner, Part) and owner.key in ("weight", "bias"):
                owner = owner.of
            if owner is layer or model_of(owner) is not None or owner is None:
                return False
            if isinstance(owner, (Part, Result)) and owner is not layer:
                return False
    return True


def _finding(step: Result) -> Finding:
    return finding(
        f"No gradient passes `{source_text(step)}`: the layers below it learn nothing by it",
        "non-differentiable-operation",
        step,
        cite(step, "a step function, of slope 0, between two layers"),
        is_symptom=True,
    )


_MODEL = """
import torch
from torch import nn

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
        h = self.{below}(x)
        {line}
        return self.up(z)

model = Coder()
{freeze}
optimizer = torch.optim.SGD(model.{trained}parameters(), lr=0.1)
for x in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
"""


def _model(line: str, below: str = "down", freeze: str = "", trained: str = "") -> Run:
    text = _MODEL.format(line=line, below=below, freeze=freeze, trained=trained)
    return make_run(sources={"train.py": text})


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
