"""A training loop that computes gradients and never applies them."""

from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, insert_after, variable_at
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.lengths import UnreachedStep, unreached_steps
from traindx.analysis.program.training.ownership import left_out
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

UPDATES = (Do.STEP, Do.MANUAL_UPDATE, Do.GRAD)


@detector(needs=("source",), suggests=("missing-optimizer-step",))
def check(run: Run) -> Findings:
    """A training loop calls backward and never steps its optimizer.

    ## What it detects
    A loop that clears the gradients of an optimizer and calls `backward`, in which neither that
    optimizer nor any other is ever stepped, by hand or through a scaler or framework. The same
    where an optimizer is made, its gradients are never cleared, and no code in sight steps it; and
    where one of several optimizers is stepped, and the one that holds other layers of the loss is
    not. Also a step every n batches, counted anew in every epoch, where an epoch has fewer.

    ## Why it matters
    Gradients are computed and thrown away. The weights stay as they were initialised and the loss
    stays at the level of guessing, without any error.

    ## What to do
    Call `optimizer.step()` after `backward()`.

    ## When it is wrong
    A loop that uses gradients for something else (attacks, saliency, statistics) reads `.grad`;
    such loops, and loops that hand the optimizer to a function out of sight, are left alone.
    """
    for story in program_of(run).stories:
        for loop in training_loops(story):
            backward = loop.does(Do.BACKWARD)
            if not backward or story.reads_gradients(loop.events):
                continue
            is_updated = bool(loop.does(*UPDATES))
            optimizer = left_out(story, backward[-1]) if is_updated else _unstepped(loop)
            if optimizer is not None:
                yield _finding(loop, backward[-1], optimizer)
        for waiting in list(unreached_steps(story))[:1]:
            yield _never(waiting)


def _unstepped(loop: Loop) -> Value | None:
    """The optimizer of a loop, where nothing in sight or out of it can step it."""
    story = loop.story
    cleared = [d.subject for d in loop.does(Do.ZERO_GRAD)]
    found = [v for v in cleared if v is not None and story.is_kind(v, Kind.OPTIMIZER)]
    made = story.made(Kind.OPTIMIZER)
    for optimizer in [*found, *(made if len(made) == 1 else [])]:
        stepped = any(d.subject is optimizer for d in story.does(Do.STEP))
        if not stepped and story.escapes(optimizer) is Answer.NO:
            return optimizer
    return None


def _finding(loop: Loop, backward: Deed, optimizer: Value) -> Finding:
    name, variable = optimizer.called("optimizer"), variable_at(backward, optimizer)
    return finding(
        f"The training loop calls backward and never {name}.step()",
        "missing-optimizer-step",
        backward,
        cite(backward, "gradients are computed here"),
        cite(loop.run.site, f"no call of {name}.step() in this loop"),
        is_symptom=True,
        patch=insert_after(backward, f"{variable}.step()") if variable else None,
    )


def _never(waiting: UnreachedStep) -> Finding:
    period, batches = waiting.period, waiting.batches
    return finding(
        f"The step comes every {period} batches, and an epoch has only {batches}",
        "missing-optimizer-step",
        waiting.step,
        cite(waiting.step, f"waits for {period} batches of one epoch"),
        cite(waiting.loop.site, f"{batches} batches, counted anew in every epoch"),
        is_symptom=True,
    )


_LOOP = """
import torch
from torch import nn, optim

model = nn.Linear(784, 10)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()
{more}
"""

_IDLE = _LOOP.replace("        optimizer.zero_grad()\n", "")

_SCALED = """
import torch
from torch import nn
def make(model):
    return torch.optim.SGD(model.parameters(), lr=.1), torch.amp.GradScaler()
def main():
    model = nn.Linear(4, 2)
    opt, scaler = make(model)
    sched = torch.optim.lr_scheduler.StepLR(opt, 3)
    for e in range(3):
        for x, y in loader:
            opt.zero_grad()
            scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
            scaler.update()
        sched.step()
main()
"""

_TWO = """
import torch
from torch import nn
encoder, decoder = nn.Linear(20, 5), nn.Linear(5, 20)
opts = {{"enc": torch.optim.Adam(encoder.parameters()), "dec": torch.optim.Adam({held})}}
for x in torch.randn(100, 8, 20):
    for opt in opts.values():
        opt.zero_grad()
    (decoder(encoder(x).relu()) - x).pow(2).mean().backward()
    {step}
"""


def _two(step: str, held: str = "decoder.parameters()") -> Run:
    return make_run(sources={"train.py": _TWO.format(step=step, held=held)})


_WAITING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Rows(Dataset):
    def __init__(self, x):
        self.x = x
    def __len__(self):
        return len(self.x) - 4
    def __getitem__(self, i):
        return self.x[i], self.x[i].sum()

x = torch.randn(800, 4)
loader = DataLoader({data}, batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 1024 // 16
steps = 0
for epoch in range(5):
    opt.zero_grad()
    for i, (a, b) in enumerate(loader{start}):
        (nn.functional.mse_loss(model(a), b) / accumulate).backward()
        steps += 1
        if {test}:
            opt.step()
            opt.zero_grad()
    {after}
"""


def _waiting(test: str, data: str = "Rows(x)", start: str = "", after: str = "pass") -> Run:
    text = _WAITING.format(test=test, data=data, start=start, after=after)
    return make_run(sources={"train.py": text})


FIRES = {
    "a period longer than an epoch": _waiting("(i + 1) % accumulate == 0"),
    "the same, counted from one": _waiting("not i % accumulate", start=", start=1"),
    "the same of tensors": _waiting("(i + 1) % 64 == 0", "TensorDataset(x, x[:, :1])"),
    "one of two is stepped": _two('opts["enc"].step()'),
    "scaled, and never stepped": make_run(sources={"train.py": _SCALED}),
    "no step at all": make_run(sources={"train.py": _LOOP.format(more="")}),
    "neither cleared nor stepped": make_run(sources={"train.py": _IDLE.format(more="")}),
}

SILENT = {
    "near miss: a period that fits": _waiting("(i + 1) % 32 == 0"),
    "near miss: counted over epochs": _waiting("steps % accumulate == 0"),
    "near miss: the last batch steps too": _waiting(
        "(i + 1) % accumulate == 0 or i + 1 == len(loader)"
    ),
    "near miss: a step after the epoch": _waiting("(i + 1) % accumulate == 0", after="opt.step()"),
    "near miss: the first batch steps": _waiting("i % accumulate == 0"),
    "near miss: both are stepped, in a loop": _two("for opt in opts.values(): opt.step()"),
    "near miss: the other one is of the same layers": _two(
        'opts["enc"].step()', "encoder.parameters()"
    ),
    "near miss: one of the two is chosen": _two("pick(opts).step()"),
    "near miss: not cleared, and handed to a function out of sight": make_run(
        sources={"train.py": _IDLE.format(more="        finish(optimizer)")}
    ),
    "a right loop": make_run(sources={"train.py": _LOOP.format(more="        optimizer.step()")}),
    "near miss: a scaler steps": make_run(
        sources={"train.py": _LOOP.format(more="        scaler.step(optimizer)")}
    ),
    "near miss: the step is compiled first": make_run(
        sources={
            "train.py": _LOOP.format(more="        update()").replace(
                "\nfor epoch", "update = torch.compile(optimizer.step)\n\nfor epoch"
            )
        }
    ),
    "near miss: handed to a function out of sight": make_run(
        sources={"train.py": _LOOP.format(more="        utils.apply(optimizer, loss)")}
    ),
    "gradients are looked at, not applied": make_run(
        sources={"train.py": _LOOP.format(more="        saliency = data.grad.abs()")}
    ),
}
