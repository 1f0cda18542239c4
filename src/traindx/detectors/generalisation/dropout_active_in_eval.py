from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Instance
from traindx.analysis.program.training.claims import each_place, finding, source_text, with_argument
from traindx.analysis.program.training.modes import active_dropouts
from traindx.analysis.program.training.operations import Operation
from traindx.examples import template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Findings:
    """A model drops units in evaluation too, for its dropout does not follow the mode.

    ## What it detects
    In the forward pass of a model in evaluation mode, or of one whose mode is out of sight:
    `F.dropout(x)` without `training=self.training` (its default is True), a dropout layer that is
    made where it is used (`nn.Dropout(0.5)(x)`: a new layer is in training mode), and attention
    with a `dropout_p` whatever the mode.

    ## Why it matters
    `model.eval()` does not reach it. Validation and inference run with units dropped at random:
    the scores are lower than the model's, and differ from call to call.

    ## What to do
    Pass `training=self.training`, or make the layer once in `__init__`.

    ## When it is wrong
    Monte-Carlo dropout and noise that belongs to the method are left alone where the name of the
    class or of the method says so, and so is what stands under a condition on the mode, what comes
    after a return for the other mode, and a rate that is made from the mode. `training=True` may
    be meant, and is only remarked.
    """
    for event, operation in each_place(run, active_dropouts, lambda found: found[0].node):
        model = event.within[-1]
        name = model.cls.node.name if isinstance(model, Instance) else "The model"
        is_asked = operation.argument("training") is not None
        says, patch = _fault(event, operation)
        yield finding(
            f"`{name}` drops units in evaluation too: {says}",
            (event, f"`{source_text(event)}`: {says}"),
            patch=patch if event.module.class_of(event.node) is not None else None,
            strength=Strength.MODERATE if is_asked else Strength.STRONG,
            hint=Strength.MODERATE if is_asked else None,
            is_symptom=False,
        )


def _fault(event: ProgramEvent, operation: Operation) -> tuple[str, str | None]:
    """Say why units are dropped, and how a method would ask for the mode."""
    if event.name == "()":
        return "a layer made in `forward` is always in training mode", None
    if operation.name == "scaled_dot_product_attention":
        rate = event.argument("dropout_p", 4)
        text = "" if rate is None else min(rate.names, key=len, default="")
        asks = f"self.{text} if self.training else 0.0"
        patch = with_argument(event, "dropout_p", asks, 4) if text else None
        return "the attention drops whatever the mode is", patch
    says = "`training` is not passed, and is True by default"
    if operation.argument("training") is not None:
        says = "`training=True` is passed, whatever the mode is"
    return says, with_argument(event, "training", "self.training", 2)


_NET = """
class {name}(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)
        self.drop = nn.Dropout(0.5)
        self.dropout = dropout

    def forward(self, x):
        x = F.relu(self.fc(x))
        {line}
        return self.head(x)
"""
_net = template(_NET, line="", name="Net")
_ATTENTION = "x = F.scaled_dot_product_attention(x, x, x, dropout_p={})"

FIRES = {
    "a function without training=": _net("x = F.dropout(x, 0.3)"),
    "a function with training=True": _net("x = F.dropout2d(x, 0.1, training=True)"),
    "a layer made in forward": _net("x = nn.Dropout(0.5)(x)"),
    "attention with a fixed rate": _net(_ATTENTION.format("self.dropout")),
}

SILENT = {
    "a function with the mode": _net("x = F.dropout(x, 0.3, self.training)"),
    "a layer of the model": _net("x = self.drop(x)"),
    "near miss: under a condition on the mode": _net("x = F.dropout(x) if self.training else x"),
    "near miss: the other mode has left": _net(
        "if not self.training: return self.head(x)\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: the other mode has left, by a name": _net(
        "on = self.training\n        if not on: return self.head(x)\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: a rate that follows the mode": _net(
        "x = F.dropout(x, p=self.dropout if self.training else 0.0)"
    ),
    "near miss: such a rate under a name": _net(
        "rate = self.dropout * self.training\n        x = F.dropout(x, rate)"
    ),
    "near miss: a method that is called in training only": _net(
        "x = self.thin(x) if self.training else x\n        return self.head(x)\n\n"
        "    def thin(self, x):\n        x = F.dropout(x, 0.3)"
    ),
    "near miss: Monte-Carlo dropout": _net("x = F.dropout(x, 0.3)", name="MCDropoutNet"),
    "near miss: a rate of zero": _net("x = F.dropout(x, 0.0)"),
    "near miss: attention that follows the mode": _net(
        _ATTENTION.format("self.dropout if self.training else 0.0")
    ),
}
