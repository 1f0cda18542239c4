import re

from traindx.analysis.curves import curve
from traindx.examples import Architecture, Floats, Tensor, decay, flat, make_run
from traindx.registry import Evidence, Findings, Run, Strength, cite, detector, finding, suggested

DEEP = 16  # weight layers; plain networks of this depth need help to train
STALLED = 0.05  # of the starting loss gained at most
ENOUGH = 30  # points
NORM = re.compile(r"norm|(?:^|\.)bn|(?:^|\.)ln|running_mean|downsample|shortcut|skip|res", re.I)
WEIGHT = re.compile(r"weight$")


@detector(needs=("architecture", "loss"), suggests=("too-deep-without-skip", "vanishing-gradients"))
def check(run: Run) -> Findings:
    """A deep model without normalisation or skip connections does not learn.

    ## What it detects
    A checkpoint with sixteen or more weight layers and no parameter of a normalisation or a skip
    connection, beside a training loss that gains next to nothing.

    ## Why it matters
    Signals and gradients shrink or grow by a factor per layer; without help the first layers get
    none.

    ## What to do
    Add residual connections and a normalisation per block, or remove layers until it trains.

    ## When it is wrong
    Skip connections without parameters leave no trace in a checkpoint; the source shows them.
    """
    loss = run.objective()
    architecture = run.architecture
    if loss is None or architecture is None or len(loss.finite()) < ENOUGH:
        return
    weights = [t for t in architecture.tensors if WEIGHT.search(t.name) and len(t.shape) >= 2]
    if len(weights) < DEEP or any(NORM.search(t.name) for t in architecture.tensors):
        return
    c = curve(loss.finite().values)
    if abs(c.start_value - c.end_value) > STALLED * abs(c.start_value):
        return
    says = f"{len(weights)} weight layers, and no normalization or skip connection by name"
    stands = f"{loss.origin.name} went from {c.start_value:.4g} to {c.end_value:.4g}"
    yield finding(
        f"A network of {len(weights)} layers without normalization does not learn",
        suggested(moderate="too-deep-without-skip", weak="vanishing-gradients"),
        Evidence(says, architecture.artifact, weights[0].name),
        cite(loss.finite(), stands, 0, -1),
        strength=Strength.MODERATE,
        onset=loss.steps[0],
    )


def _run(loss: Floats, layers: int, *, norms: bool = False) -> Run:
    tensors = [Tensor(f"net.{i}.weight", (64, 64)) for i in range(layers)]
    tensors += [Tensor(f"norm{i}.weight", (64,)) for i in range(layers if norms else 0)]
    return make_run({"loss/train": loss}, architecture=Architecture(tuple(tensors), "model.pt"))


_FLAT = flat(60, 2.3, noise=0.002)

FIRES = {"thirty plain layers": _run(_FLAT, 30)}

SILENT = {
    "near miss: it learns": _run(decay(60), 30),
    "near miss: normalised": _run(_FLAT, 30, norms=True),
    "shallow": _run(_FLAT, 4),
}
