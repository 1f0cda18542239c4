from traindx.analysis.program.training.ascent import ascent
from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Findings:
    """The training step maximises a loss of torch: a minus stands before it.

    ## What it detects
    A step with one optimizer that descends from the negative of one of torch's own losses (cross
    entropy, squared error and their kin) and no other term, by its own `backward` or by what it
    returns to its framework.

    ## Why it matters
    The optimizer descends. The negative of such a loss has no lower bound: the model is driven to
    ever worse predictions, until numbers overflow.

    ## What to do
    Take the minus away, or give `maximize=True` if climbing is meant.

    ## When it is wrong
    Attacks, gradient reversal, unlearning and generators that play against a critic climb on
    purpose; values and functions named for that, sums of several terms, optimizers that maximise,
    gradients of an input, models judged by others and steps of several optimizers are left alone.
    """
    for story in program_of(run).stories:
        found = ascent(story)
        if found is not None:
            yield finding(
                f"The step maximises its loss: it descends from `{source_text(found.whole)}`",
                (found.whole, "the loss is negated here"),
                (found.backward, "and the optimizer descends from it here"),
                patch=found.patch(),
            )
            return


_LOOP = """
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1{option})
for data, target in loader:
    optimizer.zero_grad()
    loss = {loss}
    {backward}
    optimizer.step()
"""
_loop = template(_LOOP, "loss", backward="loss.backward()", option="")

_STEP = """
import lightning as L

class Net(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        loss = {loss}
        self.log("train_loss", loss)
        return {back}
"""
_step = template(_STEP, "loss", path="net.py", back="loss")

FIRES = {
    "a step of Lightning": _step("-F.cross_entropy(self(x), y)"),
    "a step that returns a dictionary": _step("F.mse_loss(self(x), y) * -1", "{'loss': loss}"),
    "a minus before the loss": _loop("-criterion(model(data), target)"),
    "a minus, and a wrapped output": _loop("-criterion(torch.squeeze(model(data)), target)"),
    "a minus before backward": _loop("criterion(model(data), target)", "(-loss / 4).backward()"),
}

SILENT = {
    "near miss: a step of Lightning": _step("F.cross_entropy(self(x), y)"),
    "near miss: a policy's loss": _step("-(F.cross_entropy(self(x), y) * reward(x)).mean()"),
    "near miss: a generator against its critic": _loop(
        "-criterion(judge(model(data)).squeeze(1), zeros)"
    ),
    "right": _loop("criterion(model(data), target)"),
    "near miss: climbing is asked for": _loop(
        "-criterion(model(data), target)", option=", maximize=True"
    ),
    "near miss: a log-likelihood": _loop("-dist.log_prob(target).mean()"),
    "near miss: two minuses": _loop("-criterion(model(data), target)", "(-loss).backward()"),
    "near miss: a term among others": _loop("reward(data) - criterion(model(data), target)"),
}
