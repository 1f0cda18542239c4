from traindx.analysis.program.training.claims import finding, insert_after, program_of, variable_at
from traindx.analysis.program.training.lengths import unreached_steps
from traindx.analysis.program.training.loop_gaps import (
    unapplied_backwards,
)
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


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
        for unapplied in unapplied_backwards(story):
            backward, optimizer = unapplied.backward, unapplied.optimizer
            name, variable = optimizer.called("optimizer"), variable_at(backward, optimizer)
            yield finding(
                f"The training loop calls backward and never {name}.step()",
                (backward, "gradients are computed here"),
                (unapplied.loop.run.site, f"no call of {name}.step() in this loop"),
                patch=insert_after(backward, f"{variable}.step()") if variable else None,
            )
        for waiting in list(unreached_steps(story))[:1]:
            period, batches = waiting.period, waiting.batches
            yield finding(
                f"The step comes every {period} batches, and an epoch has only {batches}",
                (waiting.step, f"waits for {period} batches of one epoch"),
                (waiting.loop.site, f"{batches} batches, counted anew in every epoch"),
            )


_loop = template("""
model = nn.Linear(784, 10)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

{before:}
for epoch in range(10):
    for data, target in train_loader:
        {clear:optimizer.zero_grad()}
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()
        {more:}
""")

_TWO = """
encoder, decoder = nn.Linear(20, 5), nn.Linear(5, 20)
opts = {{"enc": torch.optim.Adam(encoder.parameters()), "dec": torch.optim.Adam({held})}}
for x in torch.randn(100, 8, 20):
    for opt in opts.values():
        opt.zero_grad()
    (decoder(encoder(x).relu()) - x).pow(2).mean().backward()
    {step}
"""

_two = template(_TWO, "step", held="decoder.parameters()")

_waiting = template("""
class Rows(Dataset):
    def __init__(self, x):
        self.x = x
    def __len__(self):
        return len(self.x) - 4
    def __getitem__(self, i):
        return self.x[i], self.x[i].sum()

x = torch.randn(800, 4)
loader = DataLoader({data:Rows(x)}, batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 1024 // 16
steps = 0
for epoch in range(5):
    opt.zero_grad()
    for i, (a, b) in enumerate(loader{start:}):
        (nn.functional.mse_loss(model(a), b) / accumulate).backward()
        steps += 1
        if {test}:
            opt.step()
            opt.zero_grad()
    {after:pass}
""")

FIRES = {
    "a period longer than an epoch": _waiting("(i + 1) % accumulate == 0"),
    "the same, counted from one": _waiting("not i % accumulate", start=", start=1"),
    "the same of tensors": _waiting("(i + 1) % 64 == 0", "TensorDataset(x, x[:, :1])"),
    "one of two is stepped": _two('opts["enc"].step()'),
    "scaled, and never stepped": script("""
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
"""),
    "no step at all": _loop(),
    "neither cleared nor stepped": _loop(clear="pass"),
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
    "near miss: not cleared, and handed to a function out of sight": _loop(
        more="finish(optimizer)", clear="pass"
    ),
    "a right loop": _loop(more="optimizer.step()"),
    "near miss: a scaler steps": _loop(more="scaler.step(optimizer)"),
    "near miss: the step is compiled first": _loop(
        more="update()", before="update = torch.compile(optimizer.step)"
    ),
    "near miss: handed to a function out of sight": _loop(more="utils.apply(optimizer, loss)"),
    "gradients are looked at, not applied": _loop(more="saliency = data.grad.abs()"),
}
