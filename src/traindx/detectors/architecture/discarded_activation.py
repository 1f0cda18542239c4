from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.operations import operation_of
from traindx.examples import template
from traindx.registry import Findings, Run, detector

ACTIVATIONS = (
    "relu", "gelu", "silu", "tanh", "sigmoid", "elu", "leaky_relu", "selu", "softplus", "mish",
    "hardswish", "relu6", "celu", "prelu",
)  # fmt: skip


@detector(needs=("source",), suggests=("missing-nonlinearity",))
def check(run: Run) -> Findings:
    """An activation function is called in a forward pass and its result is not kept.

    ## What it detects
    A statement in a forward pass that calls `F.relu(x)`, `x.tanh()`, `self.act(x)` or another
    activation and does nothing with what it returns.

    ## Why it matters
    The tensor stays as it was: the layers before and after are one linear map.

    ## What to do
    Keep the result, `x = F.relu(x)`, or use the form that works in place, `F.relu_(x)`.

    ## When it is wrong
    Forms that work in place (`relu_`, `inplace=True`) are left alone.
    """
    seen: set[object] = set()
    for found in program_of(run).results(*ACTIVATIONS):
        event = found.event
        is_new = event.node not in seen and not is_test_file(event.module)
        if is_new and event.is_dropped and event.within and not _is_in_place(event):
            seen.add(event.node)
            yield finding(
                f"The result of `{source_text(event)}` is thrown away: nothing is nonlinear here",
                (event, "computed and not kept"),
            )


def _is_in_place(event: ProgramEvent) -> bool:
    operation = operation_of(event.result)
    is_set = operation is None or "inplace" in operation.settings or len(operation.operands) > 1
    return is_set or event.name.endswith("_")


_net = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 2)
        self.act = nn.{layer:ReLU()}

    def forward(self, x):
        x = self.first(x)
        {line}
        return self.second(x)

out = Net()(torch.randn(4, 8))
""")

FIRES = {
    "a function": _net("F.relu(x)"),
    "a method": _net("x.tanh()"),
    "a layer": _net("self.act(x)"),
}

SILENT = {
    "kept": _net("x = F.relu(x)"),
    "near miss: in place": _net("F.relu_(x)"),
    "near miss: in place by an option": _net("F.relu(x, inplace=True)"),
    "near miss: a layer that works in place": _net("self.act(x)", "ReLU(inplace=True)"),
}
