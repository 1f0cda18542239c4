from dataclasses import replace

import numpy as np

from traindx.analysis.curves import curve
from traindx.analysis.recordings.observations import last_step
from traindx.analysis.recordings.ranks import has_exited_well
from traindx.analysis.recordings.traces import Trace, traces_of
from traindx.analysis.recordings.weight_updates import (
    is_limited_by_rate,
    is_warming,
    passes_over_data,
    starts_fresh,
    travelled,
)
from traindx.examples import decay, flat, recorded, watched, weights, with_source
from traindx.model.recording import Ending, LossInput, Optimizer, Process, Summary
from traindx.model.run import Floats, Series
from traindx.registry import Finding, Findings, Run, Strength, cite, cite_record, detector, finding

TRAVELLED = 0.03  # of the weights' norm over the whole run; what learns from nothing moves by 1
LEARNT = 0.05  # of the starting loss
POINTS = 60  # of the loss
ENOUGH = 4  # samples
PASSES = 2  # over the data: no short try any more


@detector(needs=("recording", "loss", "lr"), suggests=("lr-too-low", "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """A run of a fresh model is over, and its steps add up to next to nothing.

    ## What it detects
    A loss that stays where it began, and steps that add up to less than 3 % of the norm of any
    weight matrix, even if all went the same way; for a classifier that guesses, or in a program
    that loads no weights. The optimizer is one whose steps are as large as the rate, or plain
    descent with a rate below 10⁻⁴ whose gradients would do at a usual one.

    ## Why it matters
    What a network learns from nothing takes its weights about as far as they are long. A run that
    ends within a few percent of its start has not trained the model, whatever the data are.

    ## What to do
    Raise the learning rate until a step changes the weights by about a thousandth. If the rate was
    still rising when the run ended, make the warm-up a small part of the run.

    ## When it is wrong
    A model that is already trained stays where it is; one whose loss is better than that of a guess
    is left alone, and where that cannot be told, one into which weights are loaded. A short try of
    a long recipe ends in its warm-up on purpose: before two passes over the data a rate that
    still rises is left alone.
    """
    loss, rate = run.objective(), run.get("lr")
    main = run.recording.main if run.recording is not None else None
    if loss is None or rate is None or main is None or not has_exited_well(run):
        return
    finite, rates = loss.finite(), rate.finite()
    if len(finite) < POINTS or not len(rates) or abs(curve(finite.values).gained) >= LEARNT:
        return
    if is_warming(rates.values) and passes_over_data(main) < PASSES:
        return
    traces = [t for t in traces_of(main) if t.is_owned and t.is_matrix and t.has_gradient]
    far = travelled(traces, last_step(main) + 1, ENOUGH)
    if far is None or not 0.0 < far < TRAVELLED or not starts_fresh(run, main, finite.values):
        return
    if is_limited_by_rate(main, traces, far, float(rates.values.max())):
        yield _finding(main, finite, rates, traces[0], far)


def _finding(process: Process, loss: Series, rates: Series, trace: Trace, far: float) -> Finding:
    top = int(np.argmax(rates.values))
    peak = float(rates.values[top])
    is_rising = is_warming(rates.values)
    cause = "lr-schedule-misuse" if is_rising else "lr-too-low"
    c = curve(loss.values)
    whole = f"all steps together change the weights by at most {far:.2g} of their norm"
    course = f"{loss.origin.name} goes from {c.start_value:.4g} to {c.end_value:.4g}"
    return finding(
        f"The weights stay near initialisation: {whole}, with a learning rate of {peak:.2g}",
        {cause: Strength.STRONG},
        cite_record(process, trace.samples[-1].line, whole, travelled=far),
        cite(rates, f"the learning rate is never above {peak:.2g}", top, peak=peak),
        cite(loss, course, 0, -1, start=c.start_value, end=c.end_value),
        shows=None if is_rising else cause,
        against={"vanishing-gradients": Strength.MODERATE},  # they would do at a usual rate
        onset=loss.steps[0],
    )


def _run(
    loss: Floats, ratio: float, *, rate: float = 1e-6, kind: str = "AdamW", classes: int = 10,
    text: str = "", exit_code: int = 0, start: float = 1.0, targets: float = 7.0,
) -> Run:  # fmt: skip
    kind_of_loss = "cross_entropy" if classes else "mse_loss"
    given = LossInput(kind_of_loss, target=Summary(std=targets), classes=classes)
    process = watched(
        *weights("0.weight", "2.weight"), count=8, update_ratios=(ratio, ratio), losses=(given,),
        loss=float(loss[0]), optimizer=Optimizer(2, type=kind, groups=({"lr": rate},), size=2),
    )  # fmt: skip
    run = recorded(process, ending=Ending(exit_code=exit_code), loss_train=loss)
    run = replace(run, series={**run.series, "lr": _rate(start * rate, rate)})
    return with_source(run, text) if text else run


def _rate(first: float, last: float) -> Series:
    run = recorded(Process(), rate=np.linspace(first, last, 100))
    return next(iter(run.series.values())).renamed("lr")


_GUESSING = flat(100, 2.3, noise=0.01)

FIRES = {
    "a tiny rate": _run(_GUESSING, 1.6e-5),
    "plain descent": _run(_GUESSING, 1e-5, rate=5e-6, kind="SGD"),
    "a fresh regression": _run(flat(100, 45.0), 1.6e-5, classes=0, text="model = Net()"),
}

SILENT = {
    "usual steps": _run(_GUESSING, 1e-2, rate=1e-3),
    "near miss: it learns": _run(decay(100), 1.6e-5),
    "near miss: already trained": _run(flat(100, 0.4, noise=0.01), 1.6e-5),
    "near miss: loaded weights": _run(
        flat(100, 45.0), 1.6e-5, classes=0, text="model.load_state_dict(torch.load('a.pt'))"
    ),
    "near miss: a regression that is solved": _run(
        flat(100, 2.0), 1.6e-5, classes=0, text="model = Net()"
    ),
    "near miss: a short try of a long warm-up": _run(_GUESSING, 1.6e-5, start=0.01),
    "near miss: small gradients, not a small rate": _run(_GUESSING, 1e-5, rate=0.1, kind="SGD"),
    "near miss: interrupted": _run(_GUESSING, 1.6e-5, exit_code=130),
}
