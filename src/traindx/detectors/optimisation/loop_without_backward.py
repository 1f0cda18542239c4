from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.claims import each_place, finding, insert_before
from traindx.analysis.program.training.feeds import unfed_steps
from traindx.analysis.program.training.loop_gaps import BarrenStep, barren_steps
from traindx.analysis.program.training.unreached_backwards import unreached_backwards
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Findings:
    """A training loop computes a loss and steps its optimizer, with no backward pass.

    ## What it detects
    A loop with a loss and the step of an optimizer in which nothing computes gradients: no
    `backward`, no `autograd.grad`, no closure, nothing that is written to `.grad`, no call out of
    sight that gets the loss or what is made of it. Of several optimizers, one whose parameters no
    backward pass reaches while a loss of theirs is computed. An optimizer from out of sight counts
    where nothing in the code computes gradients. And a backward pass in a loop over epochs that a
    condition keeps from ever being run, where the program learns in no other way.

    ## Why it matters
    The step finds no gradients and does nothing. The loss only shakes with the batches.

    ## What to do
    Call `loss.backward()` before the step.

    ## When it is wrong
    A framework call that takes the loss and runs backward inside is out of sight; such loops are
    left alone, and so are those that estimate gradients without backward and write them down.
    """
    seen: set[object] = set()
    for barren in each_place(run, barren_steps, at=lambda b: b.step.event.node):
        seen.add(barren.step.event.node)
        yield _barren(barren)
    for unfed in each_place(run, unfed_steps, at=lambda u: u.step.event.node):
        if unfed.step.event.node not in seen:
            name = unfed.step.text or "the optimizer"
            yield finding(
                f"`{name}` steps, but no backward pass reaches its parameters",
                (unfed.loss, "this loss of theirs is never propagated back"),
                (unfed.step, "and the optimizer steps here"),
                at=unfed.step,
            )
    for found in each_place(run, unreached_backwards, at=lambda found: found.site.node):
        yield finding(
            "The backward pass is never reached: the condition before it never holds",
            (found.forward, "the model runs here in every epoch"),
            (found.site, "and this backward pass never does"),
            at=found.site,
        )


def _barren(barren: BarrenStep) -> Finding:
    name, step = barren.loss_name, barren.step
    called = f"{name}.backward()" if name else "backward()"
    can_patch = bool(name) and not barren.loop.does(Do.CLIP)
    way = "One way through the training loop" if barren.is_one_way else "The training loop"
    return finding(
        f"{way} steps the optimizer but never calls {called}",
        (barren.loss, "the loss is computed here"),
        (step, "and the optimizer steps here"),
        at=step,
        patch=insert_before(step, called) if can_patch else None,
    )


_loop = template("""
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    {loss:loss} = criterion(model(data), target)
    {more}
    optimizer.step()
""")

_handed = template("""
def train(model, optimizer, criterion, loader):
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        {more}
        optimizer.step()
""")

_amp = template("""
model = nn.Linear(4, 3).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    {more}
    scaler.step(optimizer)
    scaler.update()
""")

_pair = template("""
class Agent:
    def __init__(self):
        self.actor, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)
        self.actor_opt = torch.optim.Adam(self.actor.parameters())
        self.critic_opt = torch.optim.Adam(self.critic.parameters())

    def update(self, s, a, r):
        v = self.critic(s).squeeze(-1)
        chance = self.actor(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1)
        actor_loss = -(chance * (r - v).detach()).mean()
        critic_loss = nn.functional.mse_loss(v, r)
        self.actor_opt.zero_grad()
        self.critic_opt.zero_grad()
        {backward}
        self.actor_opt.step()
        self.critic_opt.step()
        return actor_loss.item(), critic_loss.item()

agent = Agent()
for s, a, r in rollouts:
    agent.update(s, a, r)
""")

_phases = template("""
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(5):
    for phase in {phases}:
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = nn.functional.cross_entropy(model(x), y)
            if {test:loss.requires_grad}:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
""")

_WAYS = """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda") if torch.cuda.is_available() else None
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    if {first}:
        scaler.scale(loss).backward()
    {other}
    if {second}:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    optimizer.zero_grad()
"""

_ways = template(_WAYS, "first", "second", other="pass")

FIRES = {
    "backward on one way only": _ways("scaler is not None", "scaler is None"),
    "backward on one way only, by truth": _ways("scaler", "not scaler"),
    "a phase that is called otherwise": _phases('("fit", "val")'),
    "a phase in other letters": _phases('("Train", "Val")', "phase == 'train'"),
    "one of two losses": _pair("critic_loss.backward()"),
    "scaled, and no backward": _amp("scaler.scale(loss)"),
    "in a trainer of its own": script("""
class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.crit = nn.CrossEntropyLoss()
    def loss(self, b):
        x, y = b
        return self.crit(self.model(x), y)
    def fit(self, loader, n):
        for e in range(n):
            for b in loader:
                self.opt.zero_grad()
                loss = self.loss(b)
                self.opt.step()
                print(loss.item())
"""),
    "an optimizer from out of sight": _handed("print(loss.item())"),
    "no backward": _loop("print(loss.item())"),
    "no backward, and a meter": _loop("value = loss.item()\n    meter.update(value, len(data))"),
    "a loss of two parts": _loop("loss = loss_box + loss_class", "loss_box, loss_class"),
    "the loss is a part of a sum": _loop("total = loss + 0.1 * penalty(model)"),
}

SILENT = {
    "near miss: backward on either way": _ways(
        "scaler", "scaler is None", "elif scaler is None:\n        loss.backward()"
    ),
    "near miss: two conditions": _ways("scaler is not None", "settings.plain"),
    "near miss: a phase that trains": _phases('("train", "val")'),
    "near miss: phases out of sight": _phases("settings.phases"),
    "near miss: the sum of both": _pair("(actor_loss + critic_loss).backward()"),
    "near miss: one after the other": _pair("critic_loss.backward(); actor_loss.backward()"),
    "near miss: scaled, and then backward": _amp("scaler.scale(loss).backward()"),
    "near miss: scaled, and handed on": _amp("finish(scaler.scale(loss))"),
    "near miss: gradients estimated without backward": _loop("""\
for p, e in zip(model.parameters(), directions):
        p.grad = (loss - criterion(model(data + e), target)) * e"""),
    "near miss: a sum that is handed on": _loop(
        "total = loss + 0.1 * penalty(model)\n    backprop(total)"
    ),
    "near miss: handed on by keyword": _loop("engine.run(objective=loss)"),
    "near miss: from out of sight, with backward": _handed("loss.backward()"),
    "near miss: from out of sight, handed on": _handed("finish(loss)"),
    "a right loop": _loop("loss.backward()"),
    "near miss: a framework runs it": _loop("engine.run(loss)"),
    "near miss: gradients by autograd.grad": _loop(
        "grads = torch.autograd.grad(loss, list(model.parameters()))"
    ),
}
