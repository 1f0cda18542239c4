from math import isfinite, log

from traindx.analysis.metrics.objective import stays_above
from traindx.analysis.recordings.loss_labels import CLASS_LOSSES
from traindx.analysis.recordings.traces import told_once
from traindx.examples import recorded, watched, weights
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.registry import (
    Finding,
    Findings,
    Run,
    Strength,
    cite_record,
    detector,
    finding,
    suggested,
)

FAR_ABOVE = 5.0  # times the loss of guessing; sound weights begin within a factor of two
EARLY = 3  # steps
LARGE_INPUT = 10.0  # standard deviation of a batch; normalised ones have one


@detector(needs=("recording",), suggests=("bad-initialisation", "unnormalised-inputs"))
def check(run: Run) -> Findings:
    """A classifier begins far more wrong than one that guesses.

    ## What it detects
    A cross-entropy whose value in the first steps is more than five times the logarithm of the
    number of classes, with log-probabilities that reach as far down.

    ## Why it matters
    Sound weights begin close to that logarithm. A model that is sure and wrong at the start has
    weights, or inputs, of the wrong scale; the first steps only undo it, and may break it.

    ## What to do
    Look at the scale of the inputs and of the last layer's weights: logits should begin near zero.

    ## When it is wrong
    A loss that is summed over the batch is larger by its size; so the log-probabilities themselves
    must be that far out. A pretrained model on new labels may begin like this; where the loss comes
    down soon, this is a remark.
    """
    yield from told_once(run, lambda process: _look(run, process))


def _look(run: Run, process: Process) -> Findings:
    for sample in process.samples[:1]:
        classes = [i for i in sample.losses if i.loss in CLASS_LOSSES and i.classes > 1]
        if sample.step > EARLY or not isfinite(sample.loss) or not classes:
            continue
        bar = FAR_ABOVE * log(classes[0].classes)
        depth = -classes[0].prediction.mean  # of log-probabilities, the mean over all classes
        if sample.loss > bar and depth > bar:
            yield _finding(run, process, sample, classes[0].classes)


def _finding(run: Run, process: Process, sample: Sample, classes: int) -> Finding:
    guess = log(classes)
    spreads = [b.std for b in sample.batch if isfinite(b.std) and "float" in b.dtype]
    scale = max(spreads, default=0.0)
    is_large, is_known = scale > LARGE_INPUT, scale > 0.0
    says = f"the loss is {sample.loss:.4g} at step {sample.step}; random guessing has {guess:.3g}"
    evidence = [cite_record(process, sample.line, says, step=sample.step, loss=sample.loss)]
    if is_large:
        spread = f"the standard deviation of the batch is {scale:.3g}"
        evidence.append(cite_record(process, sample.line, spread, step=sample.step, std=scale))
    lasts = stays_above(run, guess)
    suggests = suggested(moderate="bad-initialisation", weak="unnormalised-inputs")
    if is_large:
        suggests = suggested("unnormalised-inputs", weak="bad-initialisation")
    elif is_known:
        suggests = suggested("bad-initialisation")
    return finding(
        f"The initial loss is {sample.loss / guess:.0f} times that of random guessing",
        suggests,
        *evidence,
        strength=Strength.STRONG if lasts else Strength.MODERATE,
        is_symptom=lasts,
        place=sample.place,
    )


def _process(loss: float, depth: float, std: float = 1.0, step: int = 0) -> Process:
    given = LossInput("cross_entropy", prediction=Summary(mean=-depth), classes=10)
    batch = (Summary("data", (32, 3), "float32", std=std),)
    return watched(
        *weights("0.weight"), loss=loss, losses=(given,), batch=batch,
        step=lambda i: 10 * i + step,
    )  # fmt: skip


FIRES = {
    "sure and wrong, and stays so": recorded(_process(60.0, 80.0), loss_train=[60.0, 50.0, 40.0]),
    "inputs of 0 to 255": recorded(_process(60.0, 80.0, std=70.0), loss_train=[60.0, 5.0, 0.4]),
}

SILENT = {
    "a sound start": recorded(_process(2.4, 2.5)),
    "near miss: summed over the batch": recorded(_process(147.0, 2.4)),
    "near miss: late in the run": recorded(_process(60.0, 80.0, step=500)),
}
