from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import cite, each_place, finding, insert_before
from traindx.analysis.program.training.phases import Loop
from traindx.analysis.program.training.updates import updates_on_old_gradients
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-zero-grad",))
def check(run: Run) -> Findings:
    """A training loop updates its weights with gradients that accumulate from batch to batch.

    ## What it detects
    Two backward passes that follow each other in a loop, with a step of an optimizer or an update
    by hand between them, and nothing that clears the gradients it applied: not at all, or only once
    per epoch. An optimizer out of sight counts where no gradient is cleared anywhere in the code.

    ## Why it matters
    PyTorch adds to `.grad`. Every step then follows the sum of all batches so far: the effective
    learning rate grows with every step, and training becomes noisy or diverges.

    ## What to do
    Call `optimizer.zero_grad()` once per step, before `backward()` or after `step()`.

    ## When it is wrong
    Accumulation on purpose clears the gradients after every few batches; an optimizer that is made
    anew for every batch starts clean. Both are left alone, as is a step with a closure out of
    sight, gradients that are written by hand in any other way than to limit them, and a model or
    optimizer that is handed to a function out of sight.
    """
    for repeated, update in each_place(
        run, updates_on_old_gradients, lambda pair: pair[1].event.node
    ):
        loop = Loop(repeated.story, repeated.loop)
        is_step = update.do is Do.STEP
        name = update.text if is_step else "the gradients"
        missing = f"{name}.zero_grad() is called" if is_step else "they are cleared"
        elsewhere = [d for d in repeated.story.does(Do.ZERO_GRAD) if d.subject is update.subject]
        how = (
            f"only outside the loop over {loop.unit.value}" if elsewhere else "nowhere in the loop"
        )
        is_near = repeated.first.event.function is update.event.function and is_step
        yield finding(
            f"Gradients accumulate over all batches: {missing} {how}",
            (update, "the weights are updated here, in every turn"),
            *(cite(d, "cleared only here") for d in elsewhere[:1]),
            at=repeated.first,
            patch=insert_before(repeated.first, f"{name}.zero_grad()") if is_near else None,
        )


_loop = template("""
model = nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(10):
{per_epoch:    model.train()}
    for i, (data, target) in enumerate(train_loader):
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
{per_batch}
""")

_STEP = "        optimizer.step()"

_handed = template("""
from torch.nn.utils import clip_grad_norm_

def train(model, optimizer, criterion, loader, device):
    model.train()
    for data, target in loader:
        loss = criterion(model(data.to(device)), target.to(device))
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 5.0)
        if torch.isfinite(norm):
            optimizer.step()
{more:}
""")

_OWN_OPTIMIZER = """
class Descent:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr

    def zero_grad(self):
        for p in self.params:
            {clear}

    @torch.no_grad()
    def step(self):
        for p in self.params:
            p -= self.lr * p.grad

net = nn.Linear(4, 1)
opt = Descent(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""

_parts = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    {clear}
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
""")

FIRES = {
    "a part is cleared only": _parts("net.head.zero_grad()"),
    "at the first batch only": _parts("if i == 0:\n        opt.zero_grad()"),
    "an optimizer of its own that clears a name": script(_OWN_OPTIMIZER, clear="g = p.grad * 0"),
    "an update by hand": script("""
w = torch.randn(3, requires_grad=True)
for x, y in data:
    ((x @ w - y) ** 2).mean().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
"""),
    "in a trainer of its own": script("""
class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.crit = nn.CrossEntropyLoss()
    def batch(self, b):
        x, y = b
        loss = self.crit(self.model(x), y)
        loss.backward()
        self.opt.step()
        return loss.item()
    def fit(self, loader, n):
        for e in range(n):
            self.model.train()
            for b in loader:
                self.batch(b)
"""),
    "never cleared": _loop(_STEP),
    "handed in, stepped on finite gradients": _handed(),
    "limited by hand, never cleared": _loop(
        "        for p in model.parameters():\n            p.grad.clamp_(-1, 1)\n" + _STEP
    ),
    "cleared once per epoch": _loop(_STEP, "    optimizer.zero_grad()"),
}

_TWO_OPTIMIZERS = """
import lightning as L

class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = nn.Linear(4, 8), nn.Linear(8, 1)

    def training_step(self, batch, batch_idx, optimizer_idx):
        made = self.generator(torch.randn(len(batch), 4))
        if optimizer_idx == 0:
            return {"loss": -self.critic(made).mean()}
        return {"loss": (self.critic(made.detach()) - self.critic(batch)).mean()}

    def configure_optimizers(self):
        return [torch.optim.Adam(n.parameters()) for n in (self.generator, self.critic)], []
"""

SILENT = {
    "near miss: part by part": _parts("net.head.zero_grad(); net.body.zero_grad()"),
    "near miss: at the first of every few": _parts("if i % 4 == 0:\n        opt.zero_grad()"),
    "near miss: an optimizer of its own": script(_OWN_OPTIMIZER, clear="p.grad = None"),
    "near miss: an optimizer of its own, by item": script(_OWN_OPTIMIZER, clear="p.grad[:] = 0"),
    "near miss: two agents learn in turn": script("""
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self, x, y):
        self.optimizer.zero_grad()
        nn.functional.mse_loss(self.net(x), y).backward()
        self.optimizer.step()

one, other = Agent(), Agent()
for x, y in loader:
    one.learn(x, y)
    other.learn(x, y)
"""),
    "near miss: Lightning clears for one optimizer after the other": script(
        _TWO_OPTIMIZERS, path="gan.py"
    ),
    "near miss: an update by hand, cleared": script("""
w = torch.randn(3, requires_grad=True)
for x, y in data:
    ((x @ w - y) ** 2).mean().backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
"""),
    "near miss: handed in and cleared somewhere": _handed("""
    optimizer.zero_grad()
"""),
    "near miss: an optimizer of the project's own": _handed("""
class ScheduledOptim:
    def step(self):
        self.inner.step()
"""),
    "cleared after the step": _loop(_STEP + "\n        optimizer.zero_grad(set_to_none=True)"),
    "cleared through the model": _loop(_STEP + "\n        model.zero_grad()"),
    "near miss: cleared all at once": _loop(
        _STEP + "\n        torch._foreach_zero_([p.grad for p in model.parameters()])"
    ),
    "near miss: cleared by a multiplication": _loop(
        _STEP + "\n        for p in model.parameters():\n            p.grad.mul_(0)"
    ),
    "near miss: cleared by a function out of sight": _loop(_STEP + "\n        reset_grads(model)"),
    "near miss: accumulation on purpose": _loop("""
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""),
    "near miss: cleared by hand": _loop(
        _STEP + "\n        for p in model.parameters():\n            p.grad = None"
    ),
}
