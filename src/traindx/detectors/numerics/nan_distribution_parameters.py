from traindx.analysis.errors.messages import causes_in, finding, known_error, occurrences
from traindx.analysis.errors.precision_messages import DISTRIBUTION, PRINTED_NUMBER
from traindx.analysis.program.program_words import writes_minus_infinity
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector, suggested

IN_PART = {"nan-in-data": Strength.STRONG, "unstable-operation": Strength.WEAK}
IN_FULL = suggested(moderate="unstable-operation lr-too-high nan-in-data", weak="fp16-overflow")


@detector(needs=("failure",), suggests=causes_in(DISTRIBUTION))
def check(run: Run) -> Findings:
    """A distribution is given parameters that are NaN, and the message shows which.

    ## What it detects
    "Expected parameter logits … to satisfy the constraint … Real(), but found invalid values", with
    the values that torch prints, and "probability tensor contains either `inf`, `nan`" of
    `multinomial`. Where ordinary numbers are among the values, single examples are broken; where
    all are NaN, the weights are.

    ## Why it matters
    Weights that are NaN spoil every output. Where some outputs are sound, so are the weights, and
    what came out as NaN went in so.

    ## What to do
    Some values: check observations or inputs with `torch.isfinite` before the model. All values:
    look at the step before, its loss and gradient; `torch.autograd.set_detect_anomaly(True)` names
    the operation.

    ## When it is wrong
    A row whose every action is masked with −inf comes out as NaN too; where −inf is among the
    values or in the source, less is claimed. A recording knows which tensors were broken, and is
    asked in place of the message.
    """
    known = known_error(run, DISTRIBUTION)
    if known is None or run.recording is not None:
        return
    if known.kind != "values":
        yield finding(known)
        return
    name, values = known["name"], known["values"]
    sound = occurrences(values, PRINTED_NUMBER[0])
    if not sound and "nan" not in values:
        return  # the values are cut off
    claim = (
        f"Some {name} of a distribution are NaN and others are finite, so single examples are "
        "broken and not the weights"
        if sound
        else f"All {name} of a distribution are NaN, so the weights or all inputs are broken"
    )
    guesses = IN_PART if sound else IN_FULL
    if sound and ("-inf" in values or writes_minus_infinity(run)):
        guesses = {**IN_PART, "nan-in-data": Strength.MODERATE}
    yield finding(known, claim, suggests=guesses)


def _run(values: str, constraint: str = "IndependentConstraint(Real(), 1)") -> Run:
    return failed(
        "ValueError: Expected parameter logits (Tensor of shape (60, 2)) of distribution "
        f"Categorical(logits: torch.Size([60, 2])) to satisfy the constraint {constraint}, but "
        f"found invalid values:\ntensor({values})",
        "dist = Categorical(logits=logits)",
    )


FIRES = {
    "some examples are NaN": _run("[[-0.5644, -0.8410],\n        [nan, nan]]"),
    "with masks: said weaker": _run("[[-inf, 0.0000],\n        [nan, nan]]"),
    "everything is NaN": _run("[[nan, nan],\n        [nan, nan]], device='cuda:0')"),
    "multinomial": failed(
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        "token = torch.multinomial(probs, 1)",
    ),
}

SILENT = {
    "near miss: a scale below 0": _run("[0.1, -0.2]", "GreaterThan(lower_bound=0.0)"),
    "near miss: probabilities that are none": _run("[[0.7, 0.9]]", "Simplex()"),
    "another error": failed("ValueError: Expected input batch_size (8) to match"),
}
