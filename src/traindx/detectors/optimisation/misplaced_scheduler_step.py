from traindx.analysis.program.training.claims import each_place, finding, node_of
from traindx.analysis.program.training.hand_schedules import falling_rates
from traindx.analysis.program.training.missteps import missteps
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Findings:
    """The learning-rate schedule is stepped per batch where it counts epochs, or the reverse.

    ## What it detects
    A scheduler whose length is the number of epochs (`T_max=epochs`, `step_size=epochs // 2`) and
    that is stepped for every batch; one that falls so steeply (StepLR every 7 steps by 0.1) that
    stepped for every batch it is over within a few hundred batches; one that counts batches
    (OneCycleLR, CyclicLR, a LambdaLR over steps) and is stepped once per epoch, by hand or by
    Lightning; one that is stepped for every batch and for every epoch as well; and one that is
    stepped before its optimizer. One of an optimizer that another has replaced, one that is made
    again in every epoch, and a ReduceLROnPlateau that watches an accuracy and waits for it to
    fall, or a loss with `mode="max"`.

    ## Why it matters
    Counted in the wrong unit the rate falls to its end within the first epochs, or never moves.

    ## What to do
    Step it in the loop whose unit its length was given in.

    ## When it is wrong
    A variable called `epochs` that really counts steps misleads this; so does a schedule that is
    stepped out of sight. Loops over epochs without batches in them, and steps with a position,
    `step(epoch + i / n)`, are left alone.
    """
    for found in each_place(run, missteps, at=lambda f: node_of(f.schedule.made)):
        made, step = found.schedule.made, found.step
        yield finding(
            f"The learning rate is off its schedule: {found.says}",
            (step, "it is stepped here"),
            (made, "the schedule is made here"),
            at=made if step.event.by_framework else step,
            is_symptom=False,
        )
    for falling in each_place(run, falling_rates, at=lambda f: f.event.node):
        yield finding(
            f"The learning rate falls a millionfold in {falling.batches:.0f} batches",
            (falling.event, "the rate is lowered here, after every batch"),
            (falling.step, "and applied here"),
            is_symptom=False,
        )


_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.{scheduler}
for {turn}:
    for {inner_turn}:
        optimizer.zero_grad()
        criterion(model(data), target).backward()
        {before}
        optimizer.step()
        {batch}
    {epoch}
"""
_USUAL = {
    "turn": "epoch in range(epochs)",
    "inner_turn": "data, target in loader",
    "before": "pass",
    "batch": "pass",
    "epoch": "pass",
}
_loop = template(_LOOP, "scheduler", **_USUAL)
_per_batch = template(_LOOP, "scheduler", **{**_USUAL, "batch": "scheduler.step()"})
_per_epoch = template(_LOOP, "scheduler", **{**_USUAL, "epoch": "scheduler.step()"})
_COSINE = "CosineAnnealingLR(optimizer, T_max=epochs)"
_ONE_CYCLE = "OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))"
_STEEP = "StepLR(optimizer, step_size=7, gamma=0.1)"

_lent = template("""
from functools import partial

def learn(batch, net, opt, sched):
    x, y = batch
    opt.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    {each:pass}

def run(net, batches, rounds=30):
    opt = torch.optim.AdamW(net.parameters())
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=rounds)
    step = partial(learn, net=net, opt=opt, sched=sched)
    for _ in range(rounds):
        for batch in batches:
            step(batch)
        {after:pass}
""")

_lightning = template("""
import lightning as L

class Classifier(L.LightningModule):
    def __init__(self, total_steps):
        super().__init__()
        self.fc, self.total_steps = nn.Linear(4, 3), total_steps

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.fc(x), y)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters())
        sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1 - i / self.total_steps)
        return {{"optimizer": opt, "lr_scheduler": {{"scheduler": sched{more:}}}}}
""")

_milestones = template("""
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=90)
args = parser.parse_args()
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.MultiStepLR(opt, [{milestones}], gamma=0.1)
for _ in range(args.rounds):
    for x, y in train_loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        decay.step()
""")

_plateau = template("""
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer{mode:})
for epoch in range(10):
    right = total = 0
    for x, y in train_loader:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum().item()
        total += loss.item()
    scheduler.step({metric})
""")

_ACCURACY = "right / len(train_set)"

_BY_HAND = """
for group in optimizer.param_groups:
            group["lr"] *= {factor}
"""


def _by_hand(factor: float) -> Run:
    return _loop(_COSINE, batch=_BY_HAND.strip().format(factor=factor), epoch="scheduler.step()")


FIRES = {
    "by hand, halved after every batch": _by_hand(0.5),
    "steeply, over many epochs": _per_epoch(
        "ExponentialLR(optimizer, gamma=0.1)", turn="epoch in range(100)"
    ),
    "in parts that count batches": _per_epoch(
        "SequentialLR(optimizer, [one, two], milestones=[5 * len(loader)])"
    ),
    "an accuracy that should rise": _plateau(_ACCURACY),
    "a loss that should rise": _plateau("total / len(train_loader)", ', mode="max"'),
    "of an optimizer that was replaced": _per_epoch(
        _COSINE + "\noptimizer = torch.optim.Adam(model.parameters())"
    ),
    "as long as one of many epochs": _per_batch("PolynomialLR(optimizer, total_iters=len(loader))"),
    "milestones in epochs, stepped for every batch": _milestones("30, 60, 80"),
    "a length in turns of the loop, stepped by a function": _lent("sched.step()"),
    "Lightning steps it once per epoch": _lightning(),
    "before its optimizer": _loop(
        "CosineAnnealingLR(optimizer, T_max=total)", before="scheduler.step()"
    ),
    "a steep schedule for every batch": _per_batch(_STEEP),
    "for every batch and every epoch": _per_batch(
        "LambdaLR(optimizer, warm_up)", epoch="scheduler.step()"
    ),
    "cosine over epochs, per batch": _per_batch(_COSINE),
    "a stride in epochs, per batch": _per_batch(
        "StepLR(optimizer, step_size=args.epochs // 2, gamma=0.1)"
    ),
    "one cycle, per epoch": _per_epoch(_ONE_CYCLE),
    "long cycles by default, per epoch": _per_epoch("CyclicLR(optimizer, 1e-4, 0.05)"),
}

_phases = template("""
PARTS = ("train", "val")
parts = dict(zip(PARTS, random_split(data, [400, 100])))
loaders = {{p: DataLoader(d, batch_size=25) for p, d in parts.items()}}
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.3)
for epoch in range(5):
    for part in PARTS:
        for x, y in loaders[part]:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if part == "train":
                loss.backward()
                optimizer.step()
        if part == "train":
            {step:scheduler.step()}
""")

SILENT = {
    "near miss: a warm-up of one epoch": _per_batch(
        "LinearLR(optimizer, 0.1, total_iters=len(loader))"
    ),
    "near miss: by hand, slowly": _by_hand(0.9999),
    "near miss: steeply, over few epochs": _per_epoch(
        "ExponentialLR(optimizer, gamma=0.5)", turn="epoch in range(40)"
    ),
    "near miss: in parts that count epochs": _per_epoch(
        "SequentialLR(optimizer, [one, two], milestones=[5])"
    ),
    "near miss: an accuracy that may rise": _plateau(_ACCURACY, ', mode="max"'),
    "near miss: an error rate": _plateau("1 - " + _ACCURACY),
    "near miss: a loss that falls": _plateau("total / len(train_loader)"),
    "near miss: once per epoch, in a loop over the names of the parts": _phases(),
    "near miss: milestones in batches": _milestones("30_000, 60_000"),
    "near miss: steps of the decay, from the settings": _per_epoch(
        "StepLR(optimizer, step_size=args.lr_decay_steps)"
    ),
    "near miss: the size of a step, from the settings": _per_epoch(
        'StepLR(optimizer, step_size=config["step_size"])'
    ),
    "once per turn of the loop": _lent(after="sched.step()"),
    "near miss: Lightning steps it for every batch": _lightning(', "interval": "step"'),
    "near miss: epochs of the full batch, in a loop over runs": _per_batch(
        _COSINE, "run in range(10)", "epoch in range(epochs)"
    ),
    "near miss: fractions of an epoch": _loop(_COSINE, batch="scheduler.step(epoch + i / n)"),
    "near miss: one cycle in epochs": _per_epoch("OneCycleLR(optimizer, 0.1, total_steps=epochs)"),
    "near miss: short cycles in epochs": _per_epoch(
        "CyclicLR(optimizer, 1e-4, 0.05, step_size_up=10)"
    ),
    "near miss: a model after the other": _per_batch(_COSINE, inner_turn="model in models"),
    "near miss: steep, and once per epoch": _per_epoch(_STEEP),
    "near miss: steep over epochs, in a loop over folds": _per_batch(
        _STEEP, "fold in range(5)", "epoch in range(40)"
    ),
    "near miss: a slow fall for every batch": _per_batch("ExponentialLR(optimizer, gamma=0.9995)"),
    "near miss: a long stride for every batch": _per_batch(
        "StepLR(optimizer, step_size=10_000, gamma=0.5)"
    ),
    "cosine over epochs, per epoch": _per_epoch(_COSINE),
    "near miss: a stride out of sight": _per_batch(
        "StepLR(optimizer, step_size=epochs * per_epoch // 2)"
    ),
    "one cycle, per batch": _per_batch(_ONE_CYCLE),
    "near miss: cosine over all steps, per batch": _per_batch(
        "CosineAnnealingLR(optimizer, T_max=epochs * len(loader))"
    ),
}
