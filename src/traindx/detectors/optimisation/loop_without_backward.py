"""A training loop that steps without a backward pass."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, insert_before
from traindx.analysis.program.training.feeds import UnfedStep, unfed_steps
from traindx.analysis.program.training.losses import carries, is_passed_on, losses
from traindx.analysis.program.training.phases import Loop, training_loops
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.scaling import is_gradient_scaler
from traindx.analysis.program.training.updates import (
    COMPUTES,
    has_closure,
    is_made,
    is_trusted,
    writes_gradients,
)
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Findings:
    """A training loop computes a loss and steps its optimizer, with no backward pass.

    ## What it detects
    A loop with a loss and the step of an optimizer in which nothing computes gradients: no
    `backward`, no `autograd.grad`, no closure, nothing that is written to `.grad`, no call out of
    sight that gets the loss or what is made of it. Of several optimizers, one whose parameters no
    backward pass reaches while a loss of theirs is computed. An optimizer from out of sight counts
    where nothing in the code computes gradients.

    ## Why it matters
    The step finds no gradients and does nothing. The loss only shakes with the batches.

    ## What to do
    Call `loss.backward()` before the step.

    ## When it is wrong
    A framework call that takes the loss and runs backward inside is out of sight; such loops are
    left alone, and so are those that estimate gradients without backward and write them down.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for loop in training_loops(story):
            step = _step_without_gradients(loop)
            found = [] if step is None else list(losses(story, loop.events))
            made = [e.result for e in found if e.result is not None]
            if step is None or not found or is_passed_on(story, loop.events, made):
                continue
            if step.event.node not in seen:
                seen.add(step.event.node)
                yield _finding(loop, step, found[0])
        for unfed in unfed_steps(story):
            if unfed.step.event.node not in seen:
                seen.add(unfed.step.event.node)
                yield _unfed(unfed)


def _unfed(unfed: UnfedStep) -> Finding:
    name = unfed.step.text or "the optimizer"
    return finding(
        f"`{name}` steps, but no backward pass reaches its parameters",
        "missing-backward",
        unfed.step,
        cite(unfed.loss, "this loss of theirs is never propagated back"),
        cite(unfed.step, "and the optimizer steps here"),
        is_symptom=True,
    )


def _step_without_gradients(loop: Loop) -> Deed | None:
    """The step of an optimizer in a loop where nothing computes or writes gradients."""
    story = loop.story
    if loop.does(*COMPUTES, Do.MANUAL_UPDATE) or writes_gradients(story, loop.events):
        return None
    for step in loop.does(Do.STEP):
        is_plain = step.through is None or is_gradient_scaler(story, step.through)
        if is_plain and not has_closure(step) and _is_known(story, step):
            return step
    return None


def _is_known(story: Story, step: Deed) -> bool:
    """Tell whether it is an optimizer; one out of sight may get its gradients in other code."""
    if step.subject is None or not is_trusted(story, step.subject):
        return False
    return is_made(step.subject) or not any(s.does(*COMPUTES) for s in story.program.stories)


def _finding(loop: Loop, step: Deed, loss: ProgramEvent) -> Finding:
    name = loss.result.called() if loss.result is not None else ""
    sums = (e for e in loop.events if e.name in ("operator.add", "operator.iadd"))
    is_part = any(
        loss.result is not None and carries(a, [loss.result]) for e in sums for a in e.args
    )
    is_simple = bool(name) and not is_part and loss.function is step.event.function
    called = f"{name}.backward()" if is_simple else "backward()"
    can_patch = is_simple and not loop.does(Do.CLIP)
    return finding(
        f"The training loop steps the optimizer but never calls {called}",
        "missing-backward",
        step,
        cite(loss, "the loss is computed here"),
        cite(step, "and the optimizer steps here"),
        is_symptom=True,
        patch=insert_before(step, called) if can_patch else None,
    )


_LOOP = """
import torch
from torch import nn

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
{more}
    optimizer.step()
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=f"    {more}")})


_PARTS = _LOOP.replace("loss = criterion", "loss_box, loss_class = criterion")

_HANDED = """
import torch

def train(model, optimizer, criterion, loader):
    for data, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        {more}
        optimizer.step()
"""


def _handed(more: str) -> Run:
    return make_run(sources={"train.py": _HANDED.format(more=more)})


_TRAINER = """
import torch
from torch import nn
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
"""

_AMP = """
import torch
from torch import nn
model = nn.Linear(4, 3).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    {more}
    scaler.step(optimizer)
    scaler.update()
"""


def _amp(more: str) -> Run:
    return make_run(sources={"train.py": _AMP.format(more=more)})


_PAIR = """
import torch
from torch import nn

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
"""


def _pair(backward: str) -> Run:
    return make_run(sources={"train.py": _PAIR.format(backward=backward)})


FIRES = {
    "one of two losses": _pair("critic_loss.backward()"),
    "scaled, and no backward": _amp("scaler.scale(loss)"),
    "in a trainer of its own": make_run(sources={"train.py": _TRAINER}),
    "an optimizer from out of sight": _handed("print(loss.item())"),
    "no backward": _loop("print(loss.item())"),
    "no backward, and a meter": _loop("value = loss.item()\n    meter.update(value, len(data))"),
    "a loss of two parts": make_run(
        sources={"train.py": _PARTS.format(more="    loss = loss_box + loss_class")}
    ),
    "the loss is a part of a sum": _loop("total = loss + 0.1 * penalty(model)"),
}

_ESTIMATED = """for p, e in zip(model.parameters(), directions):
        p.grad = (loss - criterion(model(data + e), target)) * e"""

SILENT = {
    "near miss: the sum of both": _pair("(actor_loss + critic_loss).backward()"),
    "near miss: one after the other": _pair("critic_loss.backward(); actor_loss.backward()"),
    "near miss: scaled, and then backward": _amp("scaler.scale(loss).backward()"),
    "near miss: scaled, and handed on": _amp("finish(scaler.scale(loss))"),
    "near miss: gradients estimated without backward": _loop(_ESTIMATED),
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
