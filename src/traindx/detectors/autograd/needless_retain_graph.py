from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.graphs import needlessly_kept
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("graph-retained-across-steps",))
def check(run: Run) -> Findings:
    """A loop with a single backward asks to retain the graph.

    ## What it detects
    `loss.backward(retain_graph=True)` as the only backward of a training loop, which neither takes
    other gradients nor steps a second optimizer.

    ## Why it matters
    Nobody uses the graph again within the step, so the option usually silences the error of a
    graph that crosses steps (a hidden state, a running loss): memory and time then grow.

    ## What to do
    Remove the option; if backward then fails, detach what is carried from step to step.

    ## When it is wrong
    A loss that keeps part of its graph on purpose over a few steps (truncated backpropagation
    through time written by hand) needs it.
    """
    for backward in each_place(run, needlessly_kept, lambda found: found.event.node):
        yield finding(
            "The only backward of the loop retains its graph",
            (backward, "retain_graph=True, and no second backward"),
            strength=Strength.MODERATE,
            hint=Strength.MODERATE,
            is_symptom=False,
        )


_loop = template("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    {backward:}
    optimizer.step()
""")

FIRES = {
    "in a method": script("""
class Trainer:
    def __init__(self, model):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters())

    def backward(self, loss):
        self.optimizer.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.backward(nn.functional.mse_loss(self.model(x), y))
"""),
    "the only backward": _loop("loss.backward(retain_graph=True)"),
}

SILENT = {
    "not retained": _loop("loss.backward()"),
    "near miss: two losses share a graph": _loop(
        "loss.backward(retain_graph=True); penalty.backward()"
    ),
}
