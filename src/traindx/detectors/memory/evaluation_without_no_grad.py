from traindx.analysis.recordings.evaluations import is_over_idle_loader
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, watched, weights, with_evaluation
from traindx.model.recording import Process
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

ENOUGH = 3  # forward passes in a row


@detector(needs=("recording",), suggests=("evaluation-with-grad",))
@per_process
def check(process: Process) -> Findings:
    """Forward passes over a loader that nothing is trained on record gradients.

    ## What it detects
    Three or more forward passes in a row with gradients enabled, in evaluation mode, over a loader
    of their own, after which backward was not called.

    ## Why it matters
    Every pass keeps its activations: evaluation needs as much memory as training and is slower.

    ## What to do
    Put the loop into `with torch.no_grad():`.

    ## When it is wrong
    Evaluation that asks for gradients by `torch.autograd.grad` (attacks, saliency) needs them;
    this is only a remark.
    """
    for record in process.evaluations:
        is_idle = record.has_grad and not record.is_training and record.forwards >= ENOUGH
        if not is_idle or not is_over_idle_loader(process, record):
            continue
        says = f"{record.forwards} forward passes with gradients enabled and no backward"
        yield finding(
            "Evaluation runs without torch.no_grad() and builds graphs that are never used",
            {"evaluation-with-grad": Strength.MODERATE},
            cite_record(process, record.line, says, step=record.step, forwards=record.forwards),
            strength=Strength.MODERATE,
            is_symptom=False,
            place=record.place,
        )
        return


def _run(**given: object) -> Run:
    made = watched(*weights("0.weight"))
    return recorded(with_evaluation(made, **{"has_grad": True, **given}))


FIRES = {"a validation loop": _run()}

SILENT = {
    "without gradients": _run(has_grad=False),
    "near miss: a single pass": _run(forwards=1),
    "near miss: passes outside of a loader": _run(loader=None),
    "near miss: over the training data": _run(loader=0),
}
