from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.recordings.evaluations import cite_eval_steps, longest_in_eval_mode
from traindx.analysis.recordings.traces import layers_named, per_process
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Evaluation, Process, Sample
from traindx.registry import Finding, Findings, Run, Strength, detector, finding

ENOUGH = 3  # samples in a row


@detector(needs=("recording",), suggests=("training-in-eval-mode",))
@per_process
def check(process: Process) -> Findings:
    """Steps are taken while dropout is off and batch norm uses its running statistics.

    ## What it detects
    Three or more sampled steps in a row with the whole model in evaluation mode and dropout or
    batch norm in it, while its weights change.

    ## Why it matters
    Dropout does not regularise and batch norm neither normalises by the batch nor learns its
    statistics. It often begins with the first validation, after which `train()` is not called.

    ## What to do
    Call `model.train()` at the top of every epoch.

    ## When it is wrong
    A model that is in training mode with parts in evaluation mode (fixed batch norm) is left alone,
    as is one without layers that mind. A model that was in evaluation mode from the start may be
    fine-tuned so on purpose; that is not called certain.
    """
    for id in sorted({s.optimizer for s in process.samples}):
        samples = [s for s in process.samples if s.optimizer == id and s.is_training is not None]
        run = longest_in_eval_mode(samples)
        if len(run) >= ENOUGH and any(any(s.has_moved) for s in run):
            yield _finding(process, samples, run)


def _finding(process: Process, samples: Sequence[Sample], run: list[Sample]) -> Finding:
    first = run[0]
    was_training = any(s.is_training and s.step <= first.step for s in samples)
    before = [e for e in process.evaluations if e.step <= first.step and not e.is_training]
    since = f"from step {first.step} on" if was_training else "from the start"
    layers = layers_named(process, first.evaluating)
    return finding(
        f"The model is trained in evaluation mode {since}, which affects {layers}",
        {"training-in-eval-mode": Strength.STRONG},
        *cite_eval_steps(process, run, before[-1:]),
        shows="training-in-eval-mode" if was_training else None,
        onset=first.step,
        place=first.place,
    )


def _run(*training: bool, layers: tuple[str, ...] = ("drop", "bn1")) -> Run:
    process = watched(
        *weights("0.weight", "2.weight"), count=len(training), is_training=lambda i: training[i],
        evaluating=lambda i: () if training[i] else layers,
    )  # fmt: skip
    return recorded(replace(process, evaluations=(Evaluation(60, step=15, forwards=10),)))


FIRES = {
    "since the first validation": _run(True, True, False, False, False, False),
    "from the start": _run(*[False] * 6),
}

SILENT = {
    "in training mode": _run(*[True] * 6),
    "near miss: nothing that minds": _run(*[False] * 6, layers=()),
    "near miss: fixed batch norm": recorded(
        watched(*weights("0.weight"), is_training=True, evaluating=("bn1", "bn2"))
    ),
    "near miss: attacks are made in evaluation mode": _run(True, False, True, False, True, False),
}
