from traindx.analysis.recordings.evaluations import (
    evaluation_inputs,
    is_steady,
    spread_factor,
    training_inputs,
)
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights, with_evaluation
from traindx.model.recording import Evaluation, Process, Summary
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

FACTOR = 3.0
PLAIN_FACTOR = 20.0  # pixels from 0 to 255 against 0 to 1, and the like
FAR = 3.0  # standard deviations of training between the means


@detector(needs=("recording",), suggests=("preprocessing-mismatch",))
@per_process
def check(process: Process) -> Findings:
    """The model's inputs have another scale in evaluation than in training.

    ## What it detects
    The values of the same input of the same module: in every batch of training that was looked at
    they spread alike, and in every evaluation over a loader several times as wide or as narrow, or
    around another mean.

    ## Why it matters
    A model knows nothing about inputs on a scale it never saw: pixels divided by 255 in one of
    two loops, normalisation left out of one of two transforms, a scaler fitted anew.

    ## What to do
    Prepare inputs by one function that training and evaluation share.

    ## When it is wrong
    Evaluation on data that is meant to be foreign. Whole numbers, as tokens are, are not compared,
    nor is what is made up on the way, as samples of a generator are.
    """
    trained = training_inputs(process.samples)
    for key, seen in evaluation_inputs(process).items():
        usual = trained.get(key, [])
        if is_steady(usual):
            yield from _compare(process, usual, seen)


def _compare(
    process: Process, usual: list[Summary], seen: list[tuple[Evaluation, Summary]]
) -> Findings:
    middle = sorted(usual, key=lambda s: s.std)[len(usual) // 2]
    factor = min(spread_factor(usual, given) for _, given in seen)
    distance = min(abs(given.mean - middle.mean) / middle.std for _, given in seen)
    if factor < FACTOR and distance < FAR:
        return
    record, given = seen[0]
    is_plain = max(factor, distance) >= PLAIN_FACTOR
    says = f"evaluation inputs at step {record.step} range from {given.low:.4g} to {given.high:.4g}"
    low, high = min(s.low for s in usual), max(s.high for s in usual)
    beside = f"inputs of {len(usual)} training batches range from {low:.4g} to {high:.4g}"
    yield finding(
        f"Evaluation inputs have mean {given.mean:.3g} and standard deviation {given.std:.3g}, "
        f"training inputs {middle.mean:.3g} and {middle.std:.3g}",
        {"preprocessing-mismatch": Strength.STRONG},
        cite_record(process, record.line, says, step=record.step),
        cite_record(process, process.samples[-1].line, beside),
        shows="preprocessing-mismatch" if is_plain else None,
        place=record.place,
    )


def _given(mean: float, std: float, dtype: str = "float32", width: int = 8) -> Summary:
    low, high = mean - 2 * std, mean + 2 * std
    return Summary("0", (64, width), dtype, "cpu", low, high, mean, std)


def _run(evaluated: Summary, *trained: Summary, **given: object) -> Run:
    usual = trained or (_given(0.0, 1.0),)
    process = watched(*weights("0.weight"), entered=0, inputs=lambda i: (usual[i % len(usual)],))
    return recorded(with_evaluation(process, inputs=(evaluated,), **{"entered": 0, **given}))


FIRES = {
    "pixels that only training divides": _run(_given(120, 80), _given(0.47, 0.31)),
    "normalised in training only": _run(_given(0.45, 0.27)),
    "shifted": _run(_given(-4.0, 1.1)),
}

SILENT = {
    "the same scale": _run(_given(0.1, 0.9)),
    "near miss: clean inputs where training adds noise": _run(_given(0.0, 0.6)),
    "near miss: heavy tails": _run(_given(3, 40), *(_given(1, std) for std in (2.0, 9.0, 30.0))),
    "near miss: tokens": _run(_given(900, 300, "int64"), _given(30, 10, "int64")),
    "near miss: another input": _run(_given(120, 80, width=3)),
    "near miss: another module": _run(_given(120, 80), entered=1),
    "near miss: samples of a generator": _run(_given(120, 80), loader=None),
    "near miss: a pass over one batch": _run(_given(120, 80), forwards=1),
}
