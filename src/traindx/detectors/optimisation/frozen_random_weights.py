import re
from dataclasses import replace

from traindx.analysis.program.origins import (
    brings_weights,
    defined_names,
    freezing,
    loads_or_copies,
    makes_optimizers,
)
from traindx.analysis.recordings.frozen_layers import NEARLY_ALL, frozen_at_random, loads_only_late
from traindx.analysis.recordings.observations import has_learnt
from traindx.analysis.recordings.traces import latest_optimizers, named, share, told_once
from traindx.examples import recorded, watched, weights, with_source
from traindx.model.recording import Counts, Loaded, Parameter, Process, Submodule
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

CAUSE = "frozen-parameters"
# random weights on purpose
MEANT = re.compile(
    r"random_?(?:feature|proj|network)|reservoir|extreme_?learning|probe|distill", re.IGNORECASE
)


@detector(needs=("recording", "source"), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Linear or convolutional layers of a fresh model are frozen at their first weights.

    ## What it detects
    Weights of ordinary layers that an optimizer was given, that have `requires_grad` off from the
    first step to the last and never change, in a model of which other layers are trained, and in a
    program that loads no weights from anywhere before its end. It is a symptom where the loss of
    that optimizer does not fall or four fifths of the model are frozen, else a remark. Weights that
    the optimizer was not given count where they are so many, a line of the program freezes them and
    a framework made the optimizer.

    ## Why it matters
    A layer that keeps its random weights passes on noise; in a discriminator it hides from the
    generator what is wrong with its samples.

    ## What to do
    Freeze only what has been trained before; look at where `requires_grad` is set, and for how many
    of the parameters.

    ## When it is wrong
    Random features, reservoirs and distilled random networks are fixed on purpose, and programs
    that say so are left alone. So are adapters, teachers, and weights that are switched on later.
    """
    is_back = run.recording is not None and loads_only_late(run)
    if brings_weights(run) or any(MEANT.search(name) for name in defined_names(run)):
        return
    if not is_back and loads_or_copies(run):
        return
    culprit = freezing(run)
    is_written = culprit is not None and not makes_optimizers(run)
    for found in told_once(run, lambda process: _look(process, is_written)):
        if culprit is None:
            yield found
        else:
            says = "this turns off the gradients of the model"
            evidence = (*found.evidence, culprit.cite(says))
            yield replace(found, evidence=evidence, location=culprit.location)


def _look(process: Process, is_written: bool) -> Findings:
    for model, frozen, own, owner in frozen_at_random(process, is_written=is_written):
        part = share(frozen, own)
        is_stuck = has_learnt(process, owner) is False or part >= NEARLY_ALL
        strength = Strength.STRONG if is_stuck else Strength.MODERATE
        says = (
            f"requires_grad is off for {named(frozen)} of {model.type}, {part:.0%} of its weights, "
            "and nothing is loaded into them"
        )
        yield finding(
            f"{len(frozen)} of {len(own)} layers of {model.type} are frozen at random initial "
            "weights",
            {CAUSE: strength},
            cite_record(process, model.line, says, step=float(model.step)),
            strength=strength,
            is_symptom=is_stuck,
            place=next((o.place for o in latest_optimizers(process) if o.id == owner), None),
        )


_FRESH = """
model = Net()
for p in list(model.parameters())[:4]:
    p.requires_grad = False
"""


def _run(
    *trainable: bool, text: str = _FRESH, kind: str = "Linear", optimizer: int | None = 0,
    steps: int = 400,
) -> Run:  # fmt: skip
    parameters: list[Parameter] = []
    for i, is_on in enumerate(trainable):
        held = 0 if is_on else optimizer
        parameters += weights(f"net.{i}.weight", optimizer=held, is_trainable=is_on)
    grads = [0.1 if p.is_trainable else None for p in parameters]
    still = [p.name for p in parameters if not p.is_trainable]
    process = watched(*parameters, grads=grads, still=still)
    modules = tuple(Submodule(f"net.{i}", kind) for i in range(len(trainable)))
    models = tuple(replace(m, modules=modules) for m in process.models)
    samples = tuple(replace(s, step=i * steps // 6) for i, s in enumerate(process.samples))
    counts = Counts(99, steps=steps, backwards=steps)
    process = replace(process, models=models, samples=samples, counts=counts)
    return with_source(recorded(process), text)


FIRES = {
    "the lower half": _run(False, False, True, True),
    "one layer of three": _run(True, False, True),
    "most of a model, left out of the optimizer": _run(
        False, False, False, False, True, optimizer=None
    ),
}

_KEEPS_BEST = _FRESH + "model.load_state_dict(torch.load('best.pt'))"


def _brought_back(step: int) -> Run:
    run = _run(False, False, True, True, text=_KEEPS_BEST)
    assert run.recording is not None
    process = replace(run.recording.processes[0], loads=(Loaded(90, step, "Net", 8),))
    return replace(run, recording=replace(run.recording, processes=(process,)))


FIRES["best weights that come back at the end"] = _brought_back(400)

SILENT = {
    "near miss: weights loaded at the beginning": _brought_back(0),
    "all trained": _run(True, True, True),
    "near miss: a backbone that was loaded": _run(
        False, False, True, text="net.load_state_dict(torch.load('a.pt'))"
    ),
    "near miss: not given to the optimizer": _run(False, False, True, optimizer=None),
    "near miss: the rest was chosen for the optimizer": _run(
        False, False, False, False, True, optimizer=None, text=_FRESH + "SGD(model[8].parameters())"
    ),
    "near miss: fixed embeddings": _run(False, True, True, kind="Embedding"),
    "near miss: random features by name": _run(False, True, text="class RandomFeatures: ..."),
}
