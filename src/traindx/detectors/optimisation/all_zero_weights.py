from traindx.analysis.recordings.owners import is_stuck_at_zero
from traindx.analysis.recordings.traces import named, per_process, traces_of
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Process
from traindx.registry import Findings, Run, cite_record, detector, finding

ENOUGH = 3  # samples


@detector(needs=("recording",), suggests=("bad-initialisation",))
@per_process
def check(process: Process) -> Findings:
    """Weight matrices that are trained are all zero from the start and get no gradient.

    ## What it detects
    Weight matrices whose norm is exactly 0 in every sample, the later ones too, with gradients that
    are exactly 0, in a model that is trained.

    ## Why it matters
    Two layers of zeros in a row block each other: neither passes a signal forward nor a gradient
    back, and no number of steps changes that.

    ## What to do
    Leave weights to PyTorch's defaults, or use `kaiming_normal_` and `xavier_uniform_`; zeros are
    for biases and for the last layer of a residual branch.

    ## When it is wrong
    A layer that starts at zero on purpose (a last layer, LoRA's B, a zero convolution) gets a
    gradient and leaves zero with the first steps, so it is not concerned.
    """
    traces = [t for t in traces_of(process) if t.is_owned and t.parameter.is_trainable]
    matrices = [t for t in traces if t.is_matrix and len(t.samples) >= ENOUGH]
    stuck = [t for t in matrices if is_stuck_at_zero(t)]
    if len(stuck) < 2:
        return
    sample = stuck[0].samples[-1]
    says = f"the norm of {named(stuck)} is 0 at step {sample.step}, and so is its gradient"
    yield finding(
        f"{len(stuck)} of {len(matrices)} weight matrices are zero and get no gradient",
        "bad-initialisation",
        cite_record(process, sample.line, says, step=sample.step, zero=len(stuck)),
        onset=stuck[0].samples[0].step,
        place=sample.place,
    )


_NAMES = ("0.weight", "2.weight", "4.weight")


def _run(norms: tuple[float, ...], grads: tuple[float | None, ...], until: int = 99) -> Run:
    return recorded(watched(
        *weights(*_NAMES), grads=grads, still=_NAMES,
        weight_norms=lambda i: norms if i < until else (1.0, 1.0, 1.0),
    ))  # fmt: skip


FIRES = {"all layers": _run((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}

SILENT = {
    "usual weights": _run((1.0, 2.0, 1.0), (0.1, 0.1, 0.1)),
    "near miss: a last layer of zeros at the start": _run(
        (1.0, 2.0, 0.0), (0.0, 0.0, 0.3), until=1
    ),
    "near miss: layers that are not used": _run((1.0, 0.0, 0.0), (0.1, None, None)),
}
