from traindx.analysis.program.training.claims import cited, each_place, finding
from traindx.analysis.program.training.raw_scales import raw_targets
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("unnormalised-targets",))
def check(run: Run) -> Findings:
    """A regression is trained on targets in the thousands, from outputs of about zero.

    ## What it detects
    A squared, absolute or Huber loss in training between the output of a linear layer and targets
    whose making is in sight and whose mean or deviation is 1000 or more.

    ## Why it matters
    The output layer has to grow by orders of magnitude before anything about the targets can be
    learnt; adaptive optimizers move each weight by about the learning rate per step.

    ## What to do
    Train on (y - mean) / std of the training targets, and undo it for the output.

    ## When it is wrong
    Targets out of sight, outputs that are scaled to the targets, and programs that set the bias of
    a layer by hand are left alone.
    """
    for found in each_place(run, raw_targets, lambda f: f.loss.node):
        size = f"{found.spread.mean:.3g} ± {found.spread.std:.2g}"
        yield finding(
            f"The targets are not normalized: they are about {size}",
            *cited(found.data, "the targets are made here"),
            (found.loss, "and compared with the output of a linear layer"),
            at=found.loss,
            is_symptom=False,
        )


_program = template("""
import numpy as np
rng = np.random.default_rng(0)
x = rng.normal(size=(900, 4)).astype("float32")
price = 250_000 + 40_000 * x[:, 0] + rng.normal(0, 5000, 900)
price = {scaled:price}
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
{before:}
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.from_numpy(x), torch.from_numpy(price).float())
for epoch in range(9):
    for a, b in DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.{loss:mse_loss}({output:model(a).squeeze(1)}, b).backward()
        optimizer.step()
""")

FIRES = {
    "prices in raw units": _program(),
    "an absolute error": _program(output="model(a)[:, 0]", loss="l1_loss"),
}

SILENT = {
    "near miss: normalised": _program("(price - price.mean()) / price.std()"),
    "near miss: in thousands": _program("price / 1e5"),
    "near miss: the logarithm": _program("np.log(price)"),
    "near miss: an output in the units of the target": _program(
        output="model(a).squeeze(1) * 4e4 + 2.5e5"
    ),
    "near miss: a bias that begins at the mean": _program(
        before="nn.init.constant_(model[2].bias, 250_000.0)"
    ),
}
