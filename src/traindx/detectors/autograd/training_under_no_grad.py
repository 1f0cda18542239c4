from traindx.analysis.program.training.claims import each_place, finding, program_of, shown
from traindx.analysis.program.training.gradient_switches import left_off
from traindx.analysis.program.training.severance import unrecorded_losses
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("no-grad-training",))
def check(run: Run) -> Findings:
    """The loss of a training step is computed under `no_grad`.

    ## What it detects
    `backward` of a loss whose whole history was computed with gradients off: inside a `no_grad` or
    `inference_mode` block, in a function that is decorated with one, or after
    `set_grad_enabled(False)` that nothing has taken back, or that is taken back only where a score
    got better, as behind an early return. So too where only a penalty on the
    weights, or a parameter beside the layers, is left with a gradient.

    ## Why it matters
    Nothing is recorded there, so backward has nothing to run through: it raises, or the loop learns
    nothing.

    ## What to do
    Leave the block before the forward pass of training; keep it for validation.

    ## When it is wrong
    A target network or teacher under `no_grad` beside a recorded forward pass is right, and so is
    a validation loss of the same name; only the value that backward is called on counts, and where
    a branch decides which one that is, nothing is said.
    """
    for lost in each_place(run, unrecorded_losses, at=lambda found: found.backward.event.node):
        place = shown(lost.computed, lost.backward)
        yield finding(
            "The training loss is computed under no_grad",
            (place, "computed with gradients off here"),
            (lost.backward, "backward is called here"),
            at=shown(lost.switch, place),
        )
    for found in (f for story in program_of(run).stories for f in list(left_off(story))[:1]):
        yield finding(
            "Gradients are switched off, and on again only under a condition",
            (found.off, "gradients are switched off here"),
            (found.on, "and on again here, which some ways never reach"),
            (found.backward, "the next backward fails after such a way"),
        )


_LOOP = """
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    with {context}:
        {inside}
    {outside}
    loss.backward()
    optimizer.step()
"""
_FORWARD = "output = model(data); loss = criterion(output, target)"
_loop = template(_LOOP, "context", inside=_FORWARD, outside="pass")

_estimate = template("""
from torch.nn import functional as F

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.no_grad()
def {name:estimate}(data, target):
    loss = F.cross_entropy(model(data), target)
    return loss

for data, target in loader:
    print({name}(data, target))
    loss = {value}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

_ridge = template("""
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

{decorator:}
def error(x, y):
    return nn.functional.mse_loss(net(x).squeeze(1), y)

for x, y in loader:
    penalty = sum(p.square().sum() for p in net.parameters())
    loss = error(x, y) + 1e-3 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

_switched = template("""
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
best = {{"score": float("inf")}}

def check():
    torch.set_grad_enabled(False)
    score = sum(nn.functional.mse_loss(model(x), y).item() for x, y in held_out)
    {end}

for epoch in range(9):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
    check()
""")

_ON = "torch.set_grad_enabled(True)"
_WORSE = "if score >= best['score']:"
_KEEP = "best['score'] = score"

FIRES = {
    "on again behind an early return": _switched(
        f"{_WORSE}\n        return score\n    {_KEEP}\n    {_ON}\n    return score"
    ),
    "on again on one way only": _switched(
        f"{_WORSE}\n        print(score)\n    else:\n        {_KEEP}\n        {_ON}"
    ),
    "only the penalty has a gradient": _ridge("@torch.no_grad()"),
    "training under no_grad": _loop("torch.no_grad()"),
    "a decorated function": _estimate("compute(data, target)", "compute"),
}

SILENT = {
    "near miss: on again before the return": _switched(
        f"{_ON}\n    {_WORSE}\n        return score\n    {_KEEP}"
    ),
    "near miss: on again on either way": _switched(
        f"{_WORSE}\n        {_ON}\n        return score\n    {_KEEP}\n    {_ON}"
    ),
    "near miss: on again where it was on": _switched(f"if was_on:\n        {_ON}"),
    "near miss: a penalty beside the error": _ridge(),
    "autocast": _loop("torch.autocast('cuda')"),
    "near miss: the teacher only": _loop(
        "torch.no_grad()", "wanted = teacher(data)", "loss = F.mse_loss(model(data), wanted)"
    ),
    "near miss: the same name in validation": _estimate("model(data, target)"),
    "near miss: the other branch": script("""
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for phase in ("train", "val"):
    for data, target in loaders[phase]:
        if phase == "train":
            loss = criterion(model(data), target)
        else:
            with torch.no_grad():
                loss = criterion(model(data), target)
        if phase == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""),
    "near miss: one function for both": script("""
criterion = nn.CrossEntropyLoss()

def run(loader, optimizer=None):
    for data, target in loader:
        loss = criterion(model(data), target)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    run(train_loader, optimizer)
    with torch.no_grad():
        run(val_loader)
"""),
}
