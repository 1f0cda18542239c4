from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.wrong_modes import (
    EvalModeTraining,
    PartInEvalMode,
    parts_in_eval_mode,
    training_in_eval_mode,
)
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("training-in-eval-mode",))
def check(run: Run) -> Findings:
    """The model is put into evaluation mode and never back before it trains.

    ## What it detects
    A model whose parameters an optimizer holds and whose training pass runs in evaluation mode:
    after `eval()` before the loop, or at the end of validation without a `train()` before the next
    epoch, or the next batch where validation runs every so many batches, or after a mode that was
    meant to be restored and was read too late; or in which `from_pretrained` gave it. Also a part
    of such a model that was put into evaluation mode for a pass without gradients, as to see its
    output width, and was left so; Lightning leaves it so, too.

    ## Why it matters
    Dropout is off and batch norm uses (and never updates) its running statistics. The first epoch
    trains as meant, all later ones do not; results get worse without any error.

    ## What to do
    Call `model.train()` at the top of every epoch, before the loop over batches.

    ## When it is wrong
    Fine-tuning with frozen statistics calls `eval()` on purpose, usually on a part of the model;
    a part that ran no pass in that mode, or is frozen, is left alone, and so is a model without
    dropout and batch norm.
    """
    for story in program_of(run).stories:
        yield from map(_part_left_in_eval, parts_in_eval_mode(story))
        for found in training_in_eval_mode(story):
            yield _as_loaded(found) if found.setting is None else _left_in_eval(found)


def _as_loaded(found: EvalModeTraining) -> Finding:
    layers = ", ".join(found.layers)
    return finding(
        f"`{found.name}` trains in evaluation mode, as from_pretrained gives it ({layers})",
        (found.model, "from_pretrained puts the model into evaluation mode"),
        (found.event, "and no train() before this training step"),
        at=found.event,
        strength=Strength.MODERATE,
        patch=found.patch(),
    )


def _left_in_eval(found: EvalModeTraining) -> Finding:
    name, at = found.name, found.setting or found.event
    layers = f" ({', '.join(found.layers)})" if found.layers else ""
    return finding(
        f"`{name}` trains after `{name}.eval()`{layers}",
        (at, f"{name} is put into evaluation mode here"),
        (found.event, "and no train() before this training step"),
        patch=found.patch(),
    )


def _part_left_in_eval(found: PartInEvalMode) -> Finding:
    name = found.setting.text
    return finding(
        f"`{name}` trains in evaluation mode ({', '.join(found.layers)}), as a part of the model",
        (found.setting, f"{name} is put into evaluation mode here"),
        (found.earlier, "for this pass, and not back"),
        (found.event, "it is still in evaluation mode in this training step"),
        patch=found.patch(),
        is_symptom=False,
    )


_MODEL = """
model = nn.Sequential(nn.Linear(4, 8), nn.{layer}, nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_STEP = """
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data), target).backward()
        optimizer.step()
"""
_EPOCHS = """
{before}
for epoch in range(3):
    {top}
    for data, target in train_loader:
"""
_VALIDATION = """
    {validation}
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
"""
_program = template(
    _MODEL + _EPOCHS + _STEP + _VALIDATION,
    before="",
    validation="model.eval()",
    top="pass",
    layer="Dropout()",
)
_hidden = template("""
from losses import score_matching

def run(net, batches, test_batch):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for step, batch in enumerate(batches):
        {top:pass}
        loss = score_matching(net, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            net.eval()
            with torch.no_grad():
                test_loss = score_matching(net, test_batch)
            {after:pass}
""")
_EVERY = """
def validate():
    model.eval()
    with torch.no_grad():
        for data, target in val_loader:
            output = model(data)
    {back}
for epoch in range(3):
    model.train()
    for i, (data, target) in enumerate(train_loader):
        if i % 100 == 0:
            validate()
"""
_every = template(_MODEL + _EVERY + _STEP, back="pass", layer="Dropout()")
_part = template("""
import lightning as L

def width_of(body):
    body.eval()
    with torch.no_grad():
        width = body(torch.zeros(1, 8)).shape[1]
    {back:pass}
    return width

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2))
        self.head = nn.Linear(width_of(self.body), 2)
    def forward(self, x):
        return self.head(self.body(x))
    def training_step(self, batch, index):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.Adam(self.{trained:}parameters())

L.Trainer().fit(Net(), loader)
""")

FIRES = {
    "a part that was asked for its width": _part(),
    "validation among the batches, the pass out of sight": _hidden(),
    "never back after validation": _program(),
    "train once before all epochs": _program("model.train()"),
    "eval before the loop": _program("model.eval()", "pass"),
    "every so many batches": _every(),
}
_ATTACK = """
def attack(x, y):
    noise = torch.zeros_like(x).requires_grad_(True)
    loss = nn.functional.cross_entropy(model(x + noise), y)
    slope, = torch.autograd.grad(loss, noise)
    return (x + slope.sign()).detach()
for epoch in range(3):
    for x, target in train_loader:
        model.eval()
        data = attack(x, target)
        model.train()
"""

SILENT = {
    "near miss: a part that is put back": _part("body.train()"),
    "near miss: a part that no optimizer trains": _part(trained="head."),
    "near miss: an attack in evaluation mode": template(_MODEL + _ATTACK + _STEP)(
        layer="Dropout()"
    ),
    "near miss: a new model of the same width for each trial": script("""
from dgl.nn import GraphConv

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.conv = width, GraphConv(width, 2)
        self.drop = nn.Dropout()
    def forward(self, g, x):
        return self.drop(self.conv(g, x))

for width in widths:
    model = Net(width)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(9):
        model.train()
        for g, x, y in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(g, x), y).backward()
            optimizer.step()
        model.eval()
"""),
    "near miss: back in training mode for every batch": _hidden("net.train()"),
    "near miss: the last validation ends the run": _hidden(after="return"),
    "every so many batches, and back": _every("model.train()"),
    "train at the top of the epoch": _program(top="model.train()"),
    "near miss: nothing that minds the mode": _program(layer="ReLU()"),
    "near miss: another model is evaluated": _program("teacher.eval()", "pass"),
}
