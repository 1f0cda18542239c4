import math

from traindx.analysis.checkpoints import GROWTH, grown_matrices
from traindx.examples import with_checkpoints
from traindx.model.run import Architecture, Tensor, file_name
from traindx.registry import Evidence, Findings, Run, detector, finding, suggested

SHOWN = 4


@detector(needs=("checkpoints",), suggests=("lr-too-high", "missing-gradient-clipping"))
def check(run: Run) -> Findings:
    """Weights exploded between two checkpoints.

    ## What it detects
    Weight matrices whose norm is a hundred times that of the checkpoint before.

    ## Why it matters
    Weights that large saturate or overflow what they feed; the run has left the region where it
    can learn, even if the loss is still finite.

    ## What to do
    Go back to the checkpoint before, lower the learning rate, and clip the gradient norm.

    ## When it is wrong
    Layers that start at or near zero are left alone. Checkpoints of two different runs in one
    folder differ as well.
    """
    for before, after in zip(run.checkpoints, run.checkpoints[1:], strict=False):
        grown = list(grown_matrices(before, after))
        if not grown:
            continue
        evidence = []
        for tensor, old, new in grown[:SHOWN]:
            says = f"the norm of {tensor.name} went from {old:.4g} to {new:.4g}"
            values = {"before": old, "after": new}
            evidence.append(Evidence(says, after.artifact, tensor.name, values=values))
        name = file_name(before.artifact)
        yield finding(
            f"{len(grown)} weight matrices grew more than {GROWTH:.0f}-fold since {name}",
            suggested(moderate="lr-too-high", weak="missing-gradient-clipping"),
            *evidence,
            onset=after.step,
        )
        return


def _example(*norms: float, shape: tuple[int, ...] = (64, 64)) -> Run:
    saved = tuple(
        Architecture(
            (Tensor("fc.weight", shape, "float32", {"norm": norm}),), f"step{i}.pt", step=i
        )
        for i, norm in enumerate(norms)
    )
    return with_checkpoints(*saved)


FIRES = {"a layer explodes": _example(4.6, 5.1, 8.4e4)}

SILENT = {
    "near miss: ten times over a long training": _example(4.6, 20.0, 46.0),
    "near miss: a branch that started near zero": _example(1e-4, 5.0),
    "near miss: a temperature": _example(1.0, 400.0, shape=(1,)),
    "lost to NaN, which is another rule's": _example(4.6, math.nan),
}
