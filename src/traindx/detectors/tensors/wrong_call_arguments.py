from traindx.analysis.errors.call_messages import CALL_ARGUMENTS, argument_counts
from traindx.analysis.errors.class_blame import definition_of
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, Strength, detector

OTHER_VERSION = {"api-misuse": Strength.STRONG, "version-mismatch": Strength.WEAK}


@detector(needs=("failure",), suggests=("api-misuse", "version-mismatch"))
def check(run: Run) -> Findings:
    """A function or model is called with arguments that it does not take.

    ## What it detects
    "forward() takes 2 positional arguments but 3 were given", "missing 1 required positional
    argument", an unknown or repeated keyword, and an argument of the wrong kind such as a tuple
    where a tensor is wanted.

    ## Why it matters
    `self` counts, so the numbers in the message are one higher than those in the call.

    ## What to do
    Bring the call and the signature together; with the source the definition is shown.

    ## When it is wrong
    If the library changed its signature, the versions are at fault rather than the call.
    """
    known = known_error(run, CALL_ARGUMENTS)
    if known is not None:
        definition = definition_of(run, known["name"])
        notes = [] if definition is None else [definition.evidence]
        suggests = OTHER_VERSION if known.kind == "keyword" and definition is None else None
        claim = known.claim(**argument_counts(known))
        yield finding(known, claim, suggests=suggests, notes=notes)


_MODEL = "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"

FIRES = {
    "one too many": failed(
        "TypeError: Net.forward() takes 2 positional arguments but 3 were given",
        "out = model(x, mask)",
        sources={"m.py": _MODEL + "out = model(x, mask)\n"},
    ),
    "one missing": failed("TypeError: forward() missing 1 required positional argument: 'target'"),
    "an option that does not exist": failed(
        "TypeError: __init__() got an unexpected keyword argument 'learning_rate'"
    ),
    "the wrong kind": failed(
        "TypeError: linear(): argument 'input' (position 1) must be Tensor, not tuple"
    ),
}

SILENT = {
    "near miss: not callable at all": failed("TypeError: 'Tensor' object is not callable"),
    "another error": failed("ValueError: expected 4D input (got 3D input)"),
}
