from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.held_out_inputs import input_differences
from traindx.examples import template
from traindx.registry import Findings, Run, detector

SCALED = "Validation and training scale or shift the input differently"


@detector(needs=("source",), suggests=("preprocessing-mismatch", "augmentation-in-validation"))
def check(run: Run) -> Findings:
    """A model's input is scaled, shifted or made noisy in validation and not so in training.

    ## What it detects
    Two calls of one model, one where it learns and one on held-out batches, whose inputs, followed
    back through the loop, the collate function and the dataset to the data, go through different
    arithmetic (fixed numbers, logarithms, statistics), or through noise in validation only.

    ## Why it matters
    The model is shown inputs that it never learnt from. The metric is low, and no regularisation
    will help.

    ## What to do
    Put the preprocessing in one function and call it in both places; keep noise for training.

    ## When it is wrong
    Tests of robustness disturb inputs on purpose; functions that are named so are left alone. So
    are inputs that pass through functions out of sight, and a second view of a batch that the model
    also gets as in training.
    """
    for found in each_place(run, input_differences, lambda difference: difference.held.event.node):
        claim = "Validation adds noise to the input" if found.is_noise else SCALED
        yield finding(
            f"{claim}: {found.says}",
            (found.held.event, found.says),
            (found.trained.event, "the same model in training"),
            cause="augmentation-in-validation" if found.is_noise else "preprocessing-mismatch",
        )


_program = template("""
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for data, target in train_loader:
        {before:pass}
        optimizer.zero_grad()
        nn.functional.cross_entropy(model({train:data}), target).backward()
        optimizer.step()
    with torch.no_grad():
        for data, target in val_loader:
            data, target = data.to(device), target.to(device)
            correct = model({val}).argmax(1) == target
""")
_lightning = template("""
import torch, lightning

class Net(lightning.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self(x{train:}), y)

    def validation_step(self, batch, index):
        x, y = batch
        x = x{val}
        self.log("val", nn.functional.cross_entropy(self(x), y))
""")

_called = template("""
@torch.no_grad()
def match(net, loader):
    for x, y in loader:
        hits = net(x + 4 * torch.randn_like(x)).argmax(1) == y

def main():
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    match(model, {given})
""")

FIRES = {
    "noise in a function that is handed held-out data": _called("val_loader"),
    "noise on one of two inputs": _program("data + torch.randn_like(data)) + model(other"),
    "shifted": _program("data - 0.5"),
    "scaled in training only": _program("data", before="data = data / 255.0"),
    "noise": _program("data + 0.1 * torch.randn_like(data)"),
    "steps of Lightning": _lightning(" * 2"),
}

SILENT = {
    "near miss: a function that is handed anything": _called("batches"),
    "the same": _program("data"),
    "near miss: the same, written otherwise": _program(
        "data.float().div(255)", before="data = data / 255.0"
    ),
    "near miss: noise in training only": _program("data", train="data + torch.randn_like(data)"),
    "near miss: a second view of the same batch": _program("data) + model(data * -1.0"),
    "near miss: how much noise does to the output": _lightning(
        "\n        shaken = x + torch.randn_like(x)\n        z = self(shaken)"
    ),
    "near miss: noise in both": _lightning(" + torch.randn_like(x)", " + torch.rand_like(x)"),
    "near miss: a mixture of two": _program("data", train="lam * data + (1 - lam) * data[index]"),
    "near miss: for one batch only": _program("data", before="if epoch == 2: data = data * 1000.0"),
    "near miss: a function of its own": _program("data / 255", train="prepare(data)"),
}
