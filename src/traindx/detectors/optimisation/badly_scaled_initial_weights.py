from collections.abc import Mapping

from traindx.analysis.curves import curve
from traindx.analysis.program.origins import loads_weights, rescales
from traindx.analysis.recordings.initialisation import initial_scales, scale_fault
from traindx.examples import Floats, decay, flat, recorded, watched, weights, with_source
from traindx.model.recording import Activation, Parameter
from traindx.registry import Findings, Run, Strength, cite, cite_record, detector, finding

CAUSE = "bad-initialisation"
GAINED = 0.5  # of the starting loss: a run that gains more has got over it
POINTS = 30  # of the loss


@detector(needs=("recording", "loss", "source"), suggests=(CAUSE, "vanishing-gradients"))
def check(run: Run) -> Findings:
    """Before the first step every layer shrinks its input to nothing, or blows it up.

    ## What it detects
    In the first sample of a program that loads no weights, the root mean square of each weight
    matrix times the root of its inputs: about one where the scale of a signal is kept. All of them
    below 0.03 in a network without normalisation, half of them above 4, or scales of normalisation
    layers that begin above 3 instead of at one; where the activations of that sample show it, and
    in a run that then learns little.

    ## Why it matters
    The factor is taken once per layer, forward and backward. A signal that is too small leaves the
    output, and the gradients, independent of the input; one that is too large saturates whatever
    follows.

    ## What to do
    Leave the initialisation of the layers as it is, or use `kaiming_normal_` or `xavier_uniform_`,
    which know the width; a fixed standard deviation fits one width only.

    ## When it is wrong
    An optimizer of Adam's kind may recover within some hundred steps; a run that learns well is
    left alone. Single layers that begin at zero, and embeddings, have scales of their own.
    """
    loss = run.objective()
    main = run.recording.main if run.recording is not None else None
    if loss is None or main is None or len(loss.finite()) < POINTS or not main.samples:
        return
    if not run.sources or loads_weights(run) or rescales(run):
        return
    finite, first = loss.finite(), main.samples[0]
    c = curve(finite.values)
    says = scale_fault(initial_scales(main, first), first) if first.step == 0 else ""
    if not says or c.gained > GAINED:
        return
    end = f"{finite.origin.name} goes from {c.start_value:.4g} to {c.end_value:.4g}"
    yield finding(
        f"The initial weights are badly scaled: {says}",
        {CAUSE: Strength.STRONG},
        cite_record(main, first.line, f"at initialisation {says}", step=0.0),
        cite(finite, end, 0, -1, start=c.start_value, end=c.end_value),
        shows=CAUSE,
    )


def _run(
    norm: float, loss: Floats, *, last: float | None = None, text: str = "model = Net()",
    modules: Mapping[str, str] | None = None, gain: float | None = None,
) -> Run:  # fmt: skip
    given = (norm, norm, norm if last is None else last)
    seen = tuple(
        Activation(f"{i}", "input of addmm", std=(norm / 4.0 if gain is None else gain) ** (i / 2))
        for i in (4, 2, 0)
    )
    names = weights("0.weight", "2.weight", "4.weight")
    process = watched(*names, modules=modules, weight_norms=given, activations=seen)
    return with_source(recorded(process, loss_train=loss), text)


def _normalised(scale: float, loss: Floats) -> Run:
    """Three matrices and two normalisation layers of the given scale."""
    held = [Parameter(f"n{i}.weight", (16,), optimizer=0) for i in range(2)]
    names = {"n0": "LayerNorm", "n1": "LayerNorm"}
    matrices = weights("0.weight", "2.weight", "4.weight")
    norms = (4.0, 4.0, 4.0, 4.0 * scale, 4.0 * scale)
    process = watched(*matrices, *held, modules=names, weight_norms=norms)
    return with_source(recorded(process, loss_train=loss), "model = Net()")


_STUCK = flat(60, 2.3, noise=0.01)

FIRES = {
    "a deviation of a ten-thousandth": _run(0.002, _STUCK),
    "ten times too large": _run(24.0, _STUCK),
    "scales of ten": _normalised(10.0, _STUCK),
}

SILENT = {
    "sound": _run(3.0, _STUCK),
    "near miss: small, and learns": _run(0.002, decay(60)),
    "near miss: one large layer": _run(3.0, _STUCK, last=40.0),
    "near miss: the last layer begins near zero": _run(3.0, _STUCK, last=0.001),
    "near miss: loaded": _run(24.0, _STUCK, text="m.load_state_dict(torch.load('a.pt'))"),
    "near miss: scaled in the forward pass": _run(24.0, _STUCK, gain=1.0),
    "near miss: below normalisation": _run(0.002, _STUCK, modules={"2": "LayerNorm"}),
    "normalisation as it is": _normalised(1.0, _STUCK),
}
