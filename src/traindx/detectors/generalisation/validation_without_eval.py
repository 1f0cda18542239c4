from traindx.analysis.program.training.claims import cite, finding, program_of
from traindx.analysis.program.training.wrong_modes import (
    TrainModeEvaluation,
    evaluation_in_train_mode,
)
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("validation-in-train-mode",))
def check(run: Run) -> Findings:
    """A validation loop runs a model with dropout or batch norm that is in training mode.

    ## What it detects
    A loop over validation or test data, or a pass without gradients over nothing but such data,
    that runs a model made in sight with dropout or batch norm in it, while the model is in training
    mode: nothing called `eval()` on it or on what holds it, or `train()` was called last. `eval()`
    is `train(False)`: a `train(self, mode=True)` of its own that does not hand `mode` on undoes it.

    ## Why it matters
    Dropout makes the metric noisy and too low. Batch norm normalises by the validation batch and,
    worse, moves its running statistics with validation data.

    ## What to do
    Call `model.eval()` before the loop and `model.train()` before training goes on.

    ## When it is wrong
    Dropout that stays on to sample predictions is meant so: a loop that sets `train()` itself and
    passes that repeat one input are left alone, as is a model that was handed to something out of
    sight, or is one of several whose modes are set together.
    """
    for story in program_of(run).stories:
        for found in evaluation_in_train_mode(story):
            yield _finding(found)


def _finding(found: TrainModeEvaluation) -> Finding:
    name, evaluation = found.forward.text, found.evaluation
    evidence = [cite(found.forward, f"{name} runs here in training mode")]
    if found.mode is not None:
        evidence.append(cite(found.mode, "its mode was last set here, to training"))
    behave = "behaves" if len(found.layers) == 1 else "behave"
    return finding(
        f"The {evaluation.split or 'evaluation'} {evaluation.form} runs {name} in training mode: "
        f"{', '.join(found.layers)} {behave} as in training",
        *evidence,
        at=found.place,
        patch=found.patch(),
    )


_program = template("""
{helper:}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.drop = nn.{layer:Dropout(0.5)}

    def forward(self, x):
        return self.drop(self.fc(x))

    {method:}
model = {model:Net()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation:pass}
    with {context:torch.no_grad()}:
        for data, target in val_loader:
            output = model(data)
""")
_at_once = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5{training:, training=self.training}))

def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(200):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x)[train_nodes], labels[train_nodes]).backward()
        optimizer.step()
        {mode:pass}
        with torch.no_grad():
            {scores:loss_val = F.cross_entropy(model(x)[val_nodes], labels[val_nodes])}

main()
""")
_EVALUATING = """
from contextlib import contextmanager

@contextmanager
def evaluating(net):
    net.eval()
    yield
    net.train()
"""
_TRAIN = """
    def train(self, mode=True):
        {call}
        for m in self.fc.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()
        return self
"""


def _own_train(call: str, model: str = "Net()") -> Run:
    return _program(validation="model.eval()", model=model, method=_TRAIN.format(call=call))


def _torchvision(maker: str, validation: str = "pass") -> Run:
    return _program(
        validation=validation, model=f"torchvision.models.{maker}", helper="import torchvision"
    )


FIRES = {
    "batch norm of a model of torchvision": _torchvision("resnet18(num_classes=2).to('cuda')"),
    "a train of its own forgets the mode": _own_train("super().train()"),
    "a train of its own sets training": _own_train("super().train(True)"),
    "dropout stays on": _program(),
    "only another model is put into evaluation mode": _program(
        validation="teacher = load(settings); teacher.eval()"
    ),
    "only a copy of it is": _program(validation="ema = copy.deepcopy(model); ema.eval()"),
    "only others of a loop are": _program(
        validation="for m in (nn.Linear(2, 2), teacher()): m.eval()"
    ),
    "batch norm stays on": _program(layer="BatchNorm1d(2)"),
    "all validation data at once": _at_once(),
}

SILENT = {
    "near miss: a model of torchvision, eval before": _torchvision("resnet18()", "model.eval()"),
    "near miss: a model of torchvision without modes": _torchvision("vit_b_16()"),
    "near miss: a train of its own hands the mode on": _own_train("super().train(mode)"),
    "near miss: by name, in a part": _own_train("super().train(mode=mode)", "nn.Sequential(Net())"),
    "eval before the loop": _program(validation="model.eval()"),
    "near miss: train(False)": _program(validation="model.train(False)"),
    "near miss: train(mode=False)": _program(validation="model.train(mode=False)"),
    "near miss: a loop over several models": _program(
        validation="for m in (model, head): m.eval()"
    ),
    "near miss: such a loop in one line": _program(validation="[m.eval() for m in everything]"),
    "near miss: a container": _program(validation="nn.ModuleList([model, head]).eval()"),
    "near miss: a container under a name": _program(
        validation="parts = nn.ModuleDict({'net': model})\n    parts.eval()"
    ),
    "near miss: a function out of sight": _program(validation="set_mode([model], 'eval')"),
    "near miss: a context of its own": _program(
        helper=_EVALUATING, context="torch.no_grad(), evaluating(model)"
    ),
    "eval before all data at once": _at_once(mode="model.eval()"),
    "near miss: targets without gradients": _at_once(scores="soft = model(train_x)"),
    "near miss: a pass of nobody knows what": _at_once(scores="z = model(x)"),
    "near miss: dropout that samples predictions": _at_once(
        scores="test_draws = torch.stack([model(x_test) for _ in range(50)])"
    ),
    "near miss: dropout that no mode switches off": _at_once(training=""),
    "near miss: a layer that has no modes": _program(layer="LayerNorm(2)"),
}
