"""Validation runs with dropout on and batch statistics."""

from traindx.analysis.program.execution.values import Answer, SuperValue
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, surround
from traindx.analysis.program.training.modes import is_mode_sure, last_mode, mode_dependent
from traindx.analysis.program.training.phases import HeldOutPass, evaluations, training_passes
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


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
        for evaluation in evaluations(story):
            forward = _in_training_mode(evaluation)
            model = evaluation.forward.subject
            if forward is None or model is None or not is_mode_sure(story, model, forward.event):
                continue
            layers = mode_dependent(story, model)
            if layers and not evaluation.is_sampled and not _is_meant(evaluation, forward):
                yield _finding(evaluation, forward, layers)


def _in_training_mode(evaluation: HeldOutPass) -> Deed | None:
    """The first run of the pass, where every run of it is in training mode."""
    passes = evaluation.passes
    is_training = all(d.event.is_training is Answer.YES for d in passes)
    return passes[0] if is_training else None


def _is_meant(evaluation: HeldOutPass, forward: Deed) -> bool:
    """Tell whether the evaluation itself sets the training mode that it runs in."""
    mode = last_mode(evaluation.story, forward.subject, forward.event)
    if mode is None or mode.event.by_framework or mode.event.function is not forward.event.function:
        return False
    if _also_trains(evaluation, mode):
        return False
    return not evaluation.learns or (evaluation.loop is not None and evaluation.loop.holds(mode))


def _also_trains(evaluation: HeldOutPass, mode: Deed) -> bool:
    """Tell whether training comes by the same line: a helper of both, which undoes `eval()`."""
    forward = evaluation.forward
    passes = (event for event, _ in training_passes(evaluation.story))
    is_shared = any(event.node is forward.event.node for event in passes)
    return is_shared and any(
        d.subject is forward.subject and d.event.function is not mode.event.function
        for d in evaluation.story.does(Do.EVAL_MODE)
    )


def _finding(evaluation: HeldOutPass, forward: Deed, layers: list[str]) -> Finding:
    story, name = evaluation.story, forward.text
    mode = last_mode(story, forward.subject, forward.event)
    by_class = mode is not None and isinstance(mode.subject, SuperValue)
    evidence = [cite(forward, f"{name} runs here in training mode")]
    if mode is not None:
        evidence.append(cite(mode, "its mode was last set here, to training"))
    is_set_again = any(
        d.subject is forward.subject and d.event.loops for d in story.does(Do.TRAIN_MODE)
    )
    behave = "behaves" if len(layers) == 1 else "behave"
    return finding(
        f"The {evaluation.split or 'evaluation'} {evaluation.form} runs {name} in training mode: "
        f"{', '.join(layers)} {behave} as in training",
        "validation-in-train-mode",
        mode if by_class and mode is not None else forward,
        *evidence,
        is_symptom=True,
        patch=None
        if by_class
        else surround(evaluation.site, f"{name}.eval()", "" if is_set_again else f"{name}.train()"),
    )


_PROGRAM = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.drop = nn.{layer}

    def forward(self, x):
        return self.drop(self.fc(x))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""


_AT_ONCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(F.dropout(x, 0.5{training}))

def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(200):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x)[train_nodes], labels[train_nodes]).backward()
        optimizer.step()
        {mode}
        with torch.no_grad():
            {scores}

main()
"""


def _at_once(
    mode: str = "pass",
    scores: str = "loss_val = F.cross_entropy(model(x)[val_nodes], labels[val_nodes])",
    training: str = ", training=self.training",
) -> Run:
    return make_run(
        sources={"train.py": _AT_ONCE.format(mode=mode, scores=scores, training=training)}
    )


def _program(validation: str = "pass", layer: str = "Dropout(0.5)") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(validation=validation, layer=layer)})


_OWN_CONTEXT = """
from contextlib import contextmanager

@contextmanager
def evaluating(net):
    net.eval()
    yield
    net.train()
"""


def _context() -> Run:
    text = _PROGRAM.format(validation="pass", layer="Dropout(0.5)")
    text = text.replace("with torch.no_grad():", "with torch.no_grad(), evaluating(model):")
    return make_run(sources={"train.py": _OWN_CONTEXT + text})


_OWN_TRAIN = """
    def train(self, mode=True):
        {call}
        for m in self.fc.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()
        return self

model = {model}
"""


def _own_train(call: str, model: str = "Net()") -> Run:
    text = _PROGRAM.format(validation="model.eval()", layer="Dropout(0.5)")
    text = text.replace("\nmodel = Net()\n", _OWN_TRAIN.format(call=call, model=model))
    return make_run(sources={"train.py": text})


def _named(maker: str, validation: str = "pass") -> Run:
    text = _PROGRAM.format(validation=validation, layer="Dropout(0.5)")
    text = text.replace("model = Net()", f"import torchvision\nmodel = torchvision.models.{maker}")
    return make_run(sources={"train.py": text})


FIRES = {
    "batch norm of a model of torchvision": _named("resnet18(num_classes=2).to('cuda')"),
    "a train of its own forgets the mode": _own_train("super().train()"),
    "a train of its own sets training": _own_train("super().train(True)"),
    "dropout stays on": _program(),
    "only another model is put into evaluation mode": _program(
        "teacher = load(settings); teacher.eval()"
    ),
    "only a copy of it is": _program("ema = copy.deepcopy(model); ema.eval()"),
    "only others of a loop are": _program("for m in (nn.Linear(2, 2), teacher()): m.eval()"),
    "batch norm stays on": _program(layer="BatchNorm1d(2)"),
    "all validation data at once": _at_once(),
}

SILENT = {
    "near miss: a model of torchvision, eval before": _named("resnet18()", "model.eval()"),
    "near miss: a model of torchvision without modes": _named("vit_b_16()"),
    "near miss: a train of its own hands the mode on": _own_train("super().train(mode)"),
    "near miss: by name, in a part": _own_train("super().train(mode=mode)", "nn.Sequential(Net())"),
    "eval before the loop": _program("model.eval()"),
    "near miss: train(False)": _program("model.train(False)"),
    "near miss: train(mode=False)": _program("model.train(mode=False)"),
    "near miss: a loop over several models": _program("for m in (model, head): m.eval()"),
    "near miss: such a loop in one line": _program("[m.eval() for m in everything]"),
    "near miss: a container": _program("nn.ModuleList([model, head]).eval()"),
    "near miss: a container under a name": _program(
        "parts = nn.ModuleDict({'net': model})\n    parts.eval()"
    ),
    "near miss: a function out of sight": _program("set_mode([model], 'eval')"),
    "near miss: a context of its own": _context(),
    "eval before all data at once": _at_once("model.eval()"),
    "near miss: targets without gradients": _at_once(scores="soft = model(train_x)"),
    "near miss: a pass of nobody knows what": _at_once(scores="z = model(x)"),
    "near miss: dropout that samples predictions": _at_once(
        scores="test_draws = torch.stack([model(x_test) for _ in range(50)])"
    ),
    "near miss: dropout that no mode switches off": _at_once(training=""),
    "near miss: a layer that has no modes": _program(layer="LayerNorm(2)"),
}
