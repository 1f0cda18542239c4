from dataclasses import replace

from traindx.analysis.recordings.evaluations import (
    is_live,
    is_named_evaluation,
    is_over_held_out_data,
)
from traindx.analysis.recordings.traces import layers_named, per_process
from traindx.examples import recorded, watched, weights, with_evaluation
from traindx.model.recording import Epoch, Loader, Place, Process
from traindx.registry import Findings, cite_record, detector, finding

ENOUGH = 2  # forward passes in a row


@detector(needs=("recording",), suggests=("validation-in-train-mode",))
@per_process
def check(process: Process) -> Findings:
    """An evaluation over a loader of its own runs with dropout on or batch statistics.

    ## What it detects
    Forward passes without gradients, in a row, over a loader on which nothing is trained, while the
    model is in training mode and has dropout or batch norm. Without a loader, such passes count in
    a function that is named after an evaluation, whenever it ran.

    ## Why it matters
    Dropout makes the metric noisy and too low. Batch norm normalizes by the validation batch and
    moves its running statistics with validation data.

    ## What to do
    Call `model.eval()` before the loop and `model.train()` before training goes on.

    ## When it is wrong
    Averaged weights need a pass over the training data in training mode; a loader that is trained
    on, or that is as large as one, is left alone. So are other passes outside of a loader
    (rollouts, generators) and repeated passes over one batch (dropout that samples predictions).
    """
    for record in process.evaluations:
        if not is_live(record):
            continue
        is_pass = record.forwards >= ENOUGH and is_over_held_out_data(process, record)
        if not is_pass and not is_named_evaluation(process, record):
            continue
        layers = layers_named(process, record.live)
        says = f"{record.forwards} forward passes under no_grad while the model is in training mode"
        claim = f"Evaluation runs in training mode, which changes {layers}"
        cited = cite_record(process, record.line, says, step=record.step, forwards=record.forwards)
        yield finding(claim, "validation-in-train-mode", cited, place=record.place)
        return


def _process(**given: object) -> Process:
    made = with_evaluation(
        watched(*weights("0.weight")), **{"is_training": True, "live": ("drop",), **given}
    )
    return replace(
        made,
        loaders=(*made.loaders, Loader(5, 2, "D", 9)),
        epochs=(*made.epochs, Epoch(42, 2, 9, trained=9)),
    )


def _update_of_statistics() -> Process:
    process = _process()
    same = (Loader(3, 0, "Digits", 6000), Loader(4, 1, "Digits", 6000))
    return replace(process, loaders=same)


def _without_loader(function: str, *steps: int) -> Process:
    process = _process(loader=None, forwards=1, place=Place("train.py", 46, function))
    record = process.evaluations[0]
    return replace(process, evaluations=tuple(replace(record, step=s) for s in steps))


FIRES = {
    "a validation loader": recorded(_process()),
    "a function that evaluates": recorded(_without_loader("retrieval_accuracy", 50, 100)),
}

SILENT = {
    "in evaluation mode": recorded(_process(is_training=False, live=())),
    "near miss: rollouts, or a generator that is sampled": recorded(_process(loader=None)),
    "near miss: a function that acts": recorded(_without_loader("rollout", 50, 100)),
    "near miss: dropout on purpose": recorded(_without_loader("eval_mc_dropout", 50, 100)),
    "near miss: statistics of averaged weights": recorded(_process(loader=0)),
    "near miss: the same, over a loader of its own": recorded(_update_of_statistics()),
    "near miss: dropout that samples predictions": recorded(_process(forwards=200)),
    "near miss: unlabelled data that training uses": recorded(_process(loader=2, forwards=4)),
    "near miss: nothing that minds": recorded(_process(live=())),
}
