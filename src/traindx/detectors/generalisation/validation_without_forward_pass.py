from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.unrun_models import unrun_models
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """A loop evaluates a model and compares the targets with the inputs instead of the outputs.

    ## What it detects
    A function that puts its model into evaluation mode and computes a loss in a loop over batches,
    on two parts of one batch, while the model is neither called nor handed to anything in that
    loop and has had no part in what the loop goes over.

    ## Why it matters
    The number says nothing about the model: it is the same after every epoch, and early stopping
    and the best checkpoint are chosen by it.

    ## What to do
    Run the model on the inputs and give its outputs to the loss.

    ## When it is wrong
    A baseline that scores the inputs on purpose has no model to put into evaluation mode. Outputs
    that were gathered before and are scored in a loop of their own are left alone, as are a loss
    that was made with the model, and values that are named as outputs.
    """
    for found in each_place(run, unrun_models, lambda unrun: (unrun.loop.story, unrun.loss.node)):
        loss = found.loss
        names = [next(iter(names_of(a)[::-1]), "a part of the batch") for a in loss.args]
        yield finding(
            f"The loss in `{loss.function_name}` compares `{names[0]}` with `{names[1]}`, "
            "and neither comes from the model",
            (loss, "neither is an output of the model"),
            (found.loop.run.site, f"{found.mode.text} does not run in this loop"),
        )


_loop = template("""
@torch.no_grad()
def validate(model, criterion, loader, prepare):
    model.eval()
    total = 0.0
    {made:pass}
    for batch in loader:
        inputs, targets = prepare(batch)
        {line}
        total += loss.item()
    return total / len(loader)
""")

_OWN_CLASS = """
class Evaluator:
    def __init__(self, net, batches):
        self.net, self.batches = net, batches

    def score(self):
        self.net.eval()
        losses = []
        with torch.no_grad():
            for noisy, clean in self.batches:
                losses.append(F.mse_loss(noisy, clean).item())
        return sum(losses) / len(losses)
"""

FIRES = {
    "inputs against targets": _loop("loss = criterion(inputs, targets)"),
    "noisy against clean, in a class": script(_OWN_CLASS, path="score.py"),
}

SILENT = {
    "outputs against targets": _loop("loss = criterion(model(inputs), targets)"),
    "near miss: the outputs under the name of the inputs": _loop(
        "inputs = model(inputs); loss = criterion(inputs, targets)"
    ),
    "near miss: outputs that were gathered before": script("""
@torch.no_grad()
def validate(model, criterion, loader):
    model.eval()
    found, total = [], 0.0
    for x, y in loader:
        found.append((model(x), y))
    for a, b in found:
        total += criterion(a, b).item()
    return total
"""),
    "near miss: a step that may run the model": _loop(
        "inputs, targets = run_step(batch); loss = criterion(inputs, targets)"
    ),
    "near miss: a loss that holds the model": _loop(
        "loss = criterion(inputs, targets)", made="criterion = Residual(model)"
    ),
    "near miss: the model is handed to the loss": _loop("loss = criterion(inputs, targets, model)"),
}
