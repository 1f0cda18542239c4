from dataclasses import replace
from math import isfinite

from traindx.analysis.errors.messages import read
from traindx.analysis.errors.precision_messages import NAN_PARAMETERS
from traindx.analysis.program.program_words import writes_minus_infinity
from traindx.analysis.recordings.broken_steps import broke_ever
from traindx.analysis.recordings.observations import own_place, processes_of, summary_words
from traindx.examples import Caught, Place, Process, Sample, Summary, recorded, with_source
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

SHOWN = 3


@detector(needs=("recording",), suggests=("nan-in-data", "unstable-operation"))
def check(run: Run) -> Findings:
    """A distribution is given outputs of which some are NaN and the others ordinary numbers.

    ## What it detects
    "Expected parameter … to satisfy the constraint …, but found invalid values" and its kin of
    `multinomial`, where the tensors of the user's frame hold NaN in a part of their values, and no
    gradient or weight was broken before.

    ## Why it matters
    Weights that are NaN spoil every output. Where most outputs are sound the weights are too, and
    the examples that came out as NaN went in so.

    ## What to do
    Check the observations or inputs with `torch.isfinite` before the model: a division by a spread
    of 0, a sensor that gave nothing, a simulator that left its range.

    ## When it is wrong
    A row whose every action is masked with −inf is NaN too; where the program masks, it is said
    with less weight. An operation inside the model may break for single rows as well.
    """
    masks = writes_minus_infinity(run)
    for process in processes_of(run):
        caught = next((c for c in process.caught if read(c.message, NAN_PARAMETERS)), None)
        if caught is None or broke_ever(process):
            continue
        broken = [s for _, s in caught.tensors if s.nonfinite and isfinite(s.low)]
        if not broken or any(s.nonfinite and not isfinite(s.low) for _, s in caught.tensors):
            continue
        told = "; ".join(summary_words(s) for s in broken[:SHOWN])
        data = Strength.MODERATE if masks else Strength.STRONG
        yield finding(
            f"Some outputs of the model are NaN and most are finite ({told}), so single examples "
            "are broken and not the weights",
            {"nan-in-data": data, "unstable-operation": Strength.WEAK},
            cite_record(process, caught.line, told, step=float(caught.step)),
            against={"lr-too-high": Strength.MODERATE},
            place=own_place(caught.places),
        )
        return


_MESSAGE = (
    "Expected parameter logits (Tensor of shape (60, 2)) of distribution Categorical to satisfy "
    "the constraint IndependentConstraint(Real(), 1), but found invalid values:\ntensor(…)"
)
_PARTLY = Summary("logits", (60, 2), "float32", "cpu", -1.3, 1.2, 0.0, 0.5, nonfinite=4)
_WHOLLY = Summary("logits", (60, 2), "float32", "cpu", nonfinite=120)
_SOUND = replace(_PARTLY, nonfinite=0)


def _run(summary: Summary, message: str = _MESSAGE, samples: tuple[Sample, ...] = ()) -> Run:
    place = Place("train.py", 30, "main", "dist = Categorical(logits=logits)")
    caught = Caught(9, "ValueError", message, 12, places=(place,), tensors=(("main", summary),))
    return recorded(Process(caught=(caught,), samples=samples))


_MASKED = with_source(_run(_PARTLY), "logits[~legal] = float('-inf')\n")

FIRES = {"a few observations are NaN": _run(_PARTLY), "with masks: said weaker": _MASKED}

SILENT = {
    "near miss: every output is NaN": _run(_WHOLLY),
    "near miss: gradients were NaN before": _run(
        _PARTLY, samples=(Sample(4, 10, grad_norms=(float("nan"),)),)
    ),
    "near miss: a scale below 0": _run(_SOUND),
    "another error": _run(_PARTLY, "Expected 2D input"),
}
