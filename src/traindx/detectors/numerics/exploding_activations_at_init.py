from dataclasses import replace

from traindx.analysis.recordings.initialisation import (
    DEEP_ENOUGH,
    has_outgrown,
    is_amplified,
    is_far_above_guess,
    keeps_spread,
    layer_inputs,
)
from traindx.analysis.recordings.observations import processes_of
from traindx.analysis.recordings.traces import latest_models
from traindx.examples import recorded
from traindx.model.recording import (
    Activation,
    LossInput,
    Model,
    Parameter,
    Process,
    Sample,
    Summary,
)
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "exploding-activations"


@detector(needs=("recording",), suggests=(CAUSE, "bad-initialisation"))
def check(run: Run) -> Findings:
    """From layer to layer the spread doubles or more, and the first loss is far beyond a guess.

    ## What it detects
    The first sample of an untrained model whose layers are each given a larger spread than the one
    before, twofold per layer and more on average, up to ten and more; and whose first loss is ten
    times the mean square of the targets, or twice the loss of a guess.

    ## Why it matters
    Initial weights are made so that a layer keeps the scale of its input. What is multiplied in
    every layer is multiplied in the gradients too: the first steps are far too large, and depth
    ends in overflow.

    ## What to do
    Look for a factor in the forward pass or in the initialisation; normalise (layer norm before
    each block), scale residual branches by one over the root of their number.

    ## When it is wrong
    Inputs on a raw scale enter large and are not amplified; a residual stream grows by a few times
    over its whole depth. Both are left alone, and so is a loss that begins where it should. In
    training the weights may shrink until the spread is usual in every layer; if the loss is then
    below that of a guess, the model has outgrown it, and nothing is said.
    """
    for process in processes_of(run):
        first = process.samples[0] if process.samples else None
        if first is None or first.step > 0:
            continue
        for model in latest_models(process):
            layers = layer_inputs(model, first)
            is_deep = len(layers) >= DEEP_ENOUGH and is_amplified(layers)
            if is_deep and is_far_above_guess(first) and not has_outgrown(process):
                yield _finding(process, first, layers)
                return


def _finding(process: Process, first: Sample, layers: list[Activation]) -> Finding:
    low, high = layers[0], layers[-1]
    suggests = {CAUSE: Strength.STRONG}
    if not keeps_spread(process, first):
        suggests["bad-initialisation"] = Strength.MODERATE
    says = "at initialisation the standard deviation of the layers' inputs is " + ", ".join(
        f"{a.std:.3g} ({a.name})" for a in (*layers[:3], *layers[3:][-1:])
    )
    return finding(
        f"Activations explode in the untrained model: their standard deviation rises from "
        f"{low.std:.2g} to {high.std:.2g} over {len(layers)} layers; the first loss is "
        f"{first.loss:.3g}",
        suggests,
        cite_record(process, first.line, says, step=0.0, first_loss=first.loss),
    )


def _run(
    *spreads: float, loss: float = 490.0, step: int = 0, classes: int = 0, later: float = 0.0
) -> Run:
    names = [f"l{i}" for i in range(len(spreads))]
    model = Model(1, type="Net", parameters=tuple(Parameter(f"{n}.weight", (8, 8)) for n in names))
    layers = [Activation(n, "input of addmm", std=s) for n, s in zip(names, spreads, strict=True)]
    kind = "cross_entropy" if classes else "mse_loss"
    given = LossInput(kind, target=Summary(mean=0.0, std=1.0), classes=classes)
    sample = Sample(2, step, loss=loss, activations=tuple(layers[::-1]), losses=(given,))
    calmed = tuple(replace(a, std=later) for a in sample.activations)
    late = (replace(sample, step=i, loss=0.4, activations=calmed) for i in (500, 700, 900))
    return recorded(Process(models=(model,), samples=(sample, *(late if later else ()))))


FIRES = {
    "a factor in every layer": _run(0.7, 2.4, 8.1, 33.0),
    "learnt, and still amplified": _run(0.7, 2.4, 8.1, 33.0, later=13.0),
    "a classifier": _run(0.7, 3.1, 12.0, loss=2.35, classes=2),
}

SILENT = {
    "sound": _run(1.0, 0.6, 0.4, 0.3, loss=1.1),
    "near miss: raw inputs enter large": _run(280.0, 110.0, 60.0),
    "near miss: a residual stream": _run(1.0, 1.4, 2.0, 4.0, 8.0, loss=1.5),
    "near miss: the loss begins where it should": _run(0.7, 2.4, 8.1, 33.0, loss=1.2),
    "near miss: training has shrunk it": _run(0.7, 2.4, 8.1, 33.0, later=1.8),
    "near miss: one wide layer": _run(1.0, 30.0, 12.0, 11.0),
    "near miss: a trained model": _run(0.7, 2.4, 8.1, 33.0, step=500),
}
