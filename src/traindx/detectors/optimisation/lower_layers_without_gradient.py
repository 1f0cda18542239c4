from collections.abc import Sequence

from traindx.analysis.metrics.objective import does_not_fall
from traindx.analysis.program.origins import loads_weights
from traindx.analysis.program.program_words import mentions
from traindx.analysis.recordings.traces import (
    ADAPTERS,
    Trace,
    is_below,
    named,
    reached,
    told_once,
    unreached,
)
from traindx.examples import decay, flat, recorded, watched, weights
from traindx.model.recording import Parameter, Process
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

ENOUGH = 3  # samples
# a lower part with weights of its own from elsewhere may be kept as it is on purpose
_KEPT = ("freez", "frozen", "feature_extract", "probe")


@detector(needs=("recording",), suggests=("detached-loss", "unused-parameters"))
def check(run: Run) -> Findings:
    """Layers above get gradients, and all of the layers below them never do.

    ## What it detects
    Parameters from the first of the model up to some layer that the optimizer holds, that are
    trainable, and for which backward never produced a gradient in any sample, while it did for all
    that come after them.

    ## Why it matters
    `detach()`, `.data`, `no_grad`, a new tensor or an argmax between the two parts cuts the graph:
    the lower part keeps its random weights and the upper part learns on top of noise.

    ## What to do
    Look at what is done between the last layer without and the first layer with a gradient.

    ## When it is wrong
    A pretrained part that is run under `no_grad` on purpose looks the same. Where the program loads
    weights, or its source is not known and the loss falls, this is a remark. Parts that are
    trained in turns, or one part that is not used at all, differ only in what forward does.
    """
    yield from told_once(run, lambda process: _look(run, process))


def _look(run: Run, process: Process) -> Findings:
    for model, below in unreached(process, ENOUGH).items():
        above = reached(process, model)
        matrices = [t for t in below if t.is_matrix]
        is_meant = any(ADAPTERS.search(t.name) for t in above)
        if not matrices or not is_below(below, above) or is_meant:
            continue
        yield _finding(run, process, below, above)


def _finding(run: Run, process: Process, below: Sequence[Trace], above: Sequence[Trace]) -> Finding:
    last, first = below[-1].name, above[0].name
    sample = below[0].samples[0]
    layers = {t.name.rsplit(".", 1)[0] for t in below}
    is_sure = _loads_nothing(run) if run.sources else does_not_fall(run)
    says = (
        f"no gradient for {named(below)} in {len(below[0].samples)} samples, a gradient of "
        f"{next(g for g in above[0].grads if g is not None):.3g} for {first}"
    )
    strength = Strength.STRONG if is_sure else Strength.MODERATE
    # a single layer that comes first may also just not be used
    unused = Strength.WEAK if len(layers) > 1 else Strength.MODERATE
    return finding(
        f"No gradient flows from {first} back to {last}; {len(below)} parameters get none",
        {"detached-loss": strength, "unused-parameters": unused},
        cite_record(process, sample.line, says, step=sample.step, cut=len(below)),
        strength=strength,
        is_symptom=is_sure,
        place=sample.place,
    )


def _loads_nothing(run: Run) -> bool:
    return not loads_weights(run) and not mentions(run, *_KEPT)


_FIVE = ("enc.0.weight", "enc.1.weight", "enc.2.weight", "head.0.weight", "head.1.weight")


def _process(*reached: bool, optimizer: int | None = 0, trainable: bool = True) -> Process:
    cut = [n for n, r in zip(_FIVE, reached, strict=True) if not r]
    parameters: list[Parameter] = []
    for name in _FIVE:
        owner, switch = (optimizer, trainable) if name in cut else (0, True)
        parameters += weights(name, optimizer=owner, is_trainable=switch)
    grads = tuple(0.1 if r else None for r in reached)
    return watched(*parameters, grads=grads, still=cut)


_CUT = (False, False, False, True, True)

FIRES = {
    "the encoder, and the loss stands still": recorded(
        _process(*_CUT), loss_train=flat(60, 2.3, noise=0.01)
    ),
    "the encoder, a remark": recorded(_process(*_CUT), loss_train=decay(60)),
}

SILENT = {
    "all reached": recorded(_process(True, True, True, True, True)),
    "near miss: frozen on purpose": recorded(_process(*_CUT, trainable=False)),
    "near miss: not the optimizer's": recorded(_process(*_CUT, optimizer=None)),
    "near miss: an unused layer in the middle": recorded(_process(True, True, False, True, True)),
}
