from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.schedules import idle_schedules
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("lr-schedule-misuse",))
def check(run: Run) -> Findings:
    """A learning-rate schedule is made and `step()` is never called on it.

    ## What it detects
    A schedule that the program makes, in a function, a class or a script, and never steps; reading
    its rates or saving its state does not move it.

    ## Why it matters
    The learning rate stays where the schedule began: a warm-up never ends, a decay never comes.

    ## What to do
    Call `scheduler.step()` after `optimizer.step()`, in the loop whose unit its length counts.

    ## When it is wrong
    A schedule that is handed to a trainer or to code out of sight, or returned, may be stepped
    there and is left alone. So is every one where a program was not followed to its end.
    """
    for made in idle_schedules(program_of(run)):
        name = min(sorted(made.names - {"self"}), key=len, default="scheduler")
        yield finding(
            f"`{name}` ({made.maker.rsplit('.', 1)[-1]}) is made and never stepped: the "
            "learning rate stays where the schedule begins",
            (made, f"no `{name}.step()` follows"),
            is_symptom=False,
        )


_LOOP = """
from torch.optim.lr_scheduler import CosineAnnealingLR

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = CosineAnnealingLR(optimizer, T_max=10)
{handed}
for epoch in range(10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    {after}
"""
_loop = template(_LOOP, after="", handed="")
_trainer = template("""
class Trainer:
    def __init__(self, net):
        self.opt = torch.optim.Adam(net.parameters())
        self.decay = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.9)

    def fit(self, net, loader):
        for x, y in loader:
            self.opt.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            self.opt.step()
        {end:pass}

def main(net, loader):
    Trainer(net).fit(net, loader)
""")
_handed = template("""
from transformers import Trainer, get_cosine_schedule_with_warmup
from somewhere import Loop

class Own({base:}):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss

adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = get_cosine_schedule_with_warmup(adam, 6, 150)
Own(model=model, args=args, train_dataset=rows, optimizers=(adam, schedule)).{run:}()
""")

_CHOSEN = """
from timm.scheduler import CosineLRScheduler, StepLRScheduler

def made(optimizer):
    found = None
    if config.schedule == "cosine":
        found = CosineLRScheduler(optimizer, t_initial=10)
    elif config.schedule == "step":
        found = StepLRScheduler(optimizer, decay_t=3)
    return found
"""

FIRES = {
    "an attribute of a trainer": _trainer(),
    "never used": _loop("pass"),
    "only printed": _loop("print(scheduler.get_last_lr())"),
    "only saved": _loop("torch.save({'s': scheduler.state_dict()}, 'c.pt')"),
}

_LIGHTNING = """
import lightning as L

class Net(L.LightningModule):
    def training_step(self, batch, batch_idx):
        return self.head(batch).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters())
        if self.hparams.kind is None:
            return optimizer
        if self.hparams.kind == "step":
            scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        else:
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        return [optimizer], [scheduler]
"""

_WRAPPED = (
    _LIGHTNING.replace("[scheduler]", "[WarmUp(scheduler)]")
    + """
class WarmUp:
    def __init__(self, inner):
        self.inner, self.count = inner, 0

    def step(self):
        self.count += 1
        if self.count > 5:
            self.inner.step()
"""
)

SILENT = {
    "near miss: stepped by number of update": script(
        _LOOP.format(handed="", after="scheduler.step_update(epoch)")
        .replace("from torch.optim.lr_scheduler", "from timm.scheduler")
        .replace("CosineAnnealingLR(optimizer, T_max=10)", "made(optimizer)")
        .replace("\noptimizer =", _CHOSEN + "\noptimizer =")
    ),
    "near miss: handed to one's own kind of trainer": _handed("Trainer", "train"),
    "near miss: handed to a base out of sight": _handed("Loop", "go"),
    "near miss: one that a schedule of the project's own steps": script(_WRAPPED),
    "near miss: one of two, which Lightning steps": script(_LIGHTNING),
    "stepped by the trainer": _trainer("self.decay.step()"),
    "stepped": _loop("scheduler.step()"),
    "near miss: handed to a trainer": _loop("pass", "trainer.use(optimizer, scheduler)"),
    "near miss: kept in a list": _loop("for s in all: s.step()", "all = [scheduler]"),
    "near miss: prepared": _loop("pass", "scheduler = accelerator.prepare(scheduler)"),
}
