import re
from math import isfinite

from traindx.analysis.recordings.input_batches import position_ratio
from traindx.analysis.recordings.observations import late_samples
from traindx.analysis.recordings.predictions import is_far_from_learnt
from traindx.analysis.recordings.traces import latest_models, per_process
from traindx.examples import recorded, watched
from traindx.model.recording import Activation, LossInput, Parameter, Process, Sample, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "unnormalised-inputs"
DROWNED = 100.0  # times the size of the positions; a sound model begins at twenty and falls to five
ENOUGH = 2  # late samples
_POSITIONS = re.compile(r"(?:^|[._])(?:pos|wpe)", re.IGNORECASE)


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """The first layer's output is a hundred times as large as the positional embedding.

    ## What it detects
    Learned positional embeddings beside a first layer with inputs of size ten and more. The output
    of that layer (its weights times its inputs) is a hundred times and more as large as the
    embeddings, also late in training, and a classifier stays above a third of the loss of a guess.

    ## Why it matters
    Positions start at a few hundredths, which fits inputs of about one. The normalisation of the
    first block divides by the size of the sum, and what is left of the positions is nothing: the
    model sees a bag of patches without order.

    ## What to do
    Subtract the mean and divide by the spread of the training data; pixels by 255.

    ## When it is wrong
    A task that needs no order does not miss the positions; where the loss falls, nothing is said.
    """
    late = [s for s in late_samples(process) if isfinite(s.loss)]
    if len(late) < ENOUGH or not is_far_from_learnt(late):
        return
    for model in latest_models(process):
        shapes = {p.name: p.shape for p in model.parameters}
        tables = [n for n, s in shapes.items() if _POSITIONS.search(n) and len(s) >= 2]
        ratios = [
            [r for s in late if (r := position_ratio(s, shapes, t)) is not None] for t in tables
        ]
        for table, known in zip(tables, ratios, strict=True):
            if len(known) == len(late) and min(known) >= DROWNED:
                yield _finding(process, late[-1], table, known[-1])
                return


def _finding(process: Process, sample: Sample, table: str, ratio: float) -> Finding:
    says = f"at step {sample.step} the embedded inputs are {ratio:.3g} times as large as {table}"
    claim = (
        f"The inputs are not normalized: they are {ratio:.0f} times as large as the "
        f"positional embedding {table}"
    )
    cited = cite_record(process, sample.line, says, step=sample.step, ratio=ratio)
    return finding(claim, {CAUSE: Strength.STRONG}, cited, onset=0.0)


def _run(size: float, *, loss: float = 1.1, table: str = "pos_embed") -> Run:
    tables = (
        Parameter(table, (1, 17, 32), "float32", True, 0),
        Parameter("patches.weight", (32, 1, 2, 2), "float32", True, 0),
    )
    layer = Activation("patches", "input of convolution", (32, 1, 8, 8), mean=0.0, std=size)
    process = watched(
        *tables, count=8, loss=loss, losses=(LossInput("cross_entropy", "addmm", classes=10),),
        batch=(Summary("0", (32, 1, 8, 8), "float32", mean=0.0, std=size),), activations=(layer,),
        weight_norms=(1.0, 3.1),
    )  # fmt: skip
    return recorded(process)


FIRES = {"raw pixels": _run(70.0)}

SILENT = {
    "normalised": _run(1.0),
    "near miss: a little large": _run(5.0),
    "near miss: learnt all the same": _run(70.0, loss=0.2),
    "near miss: no positions": _run(70.0, table="scale"),
}
