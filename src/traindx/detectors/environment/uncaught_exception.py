from traindx.analysis.errors.root_failure import last_burst, raised_from, root_failure, standing
from traindx.examples import Failure, Frame, logged, make_run
from traindx.registry import Evidence, Finding, Findings, Run, Strength, detector

INTENDED = frozenset({"KeyboardInterrupt", "SystemExit"})


@detector(needs=("failure",), suggests=())
def check(run: Run) -> Findings:
    """The run ended with an exception.

    ## What it detects
    A traceback or error line in the log, with the place in the user's own code where it was raised.

    ## Why it matters
    The run is over, whatever its curves say. Other detectors say why; this one makes sure that an
    error they do not know is not passed over.

    ## What to do
    `traindx explain -` with the whole traceback, and the source files that it names.

    ## When it is wrong
    An exception that the program caught and logged did not end the run; where metrics follow it,
    nothing is said.
    """
    burst = last_burst(run)
    raised = [f for f in burst if not standing(f)] or burst  # a launcher only says that one failed
    is_passed_on = bool(raised) and raised[-1].message.startswith("Caught ")
    if is_passed_on and (root := root_failure(run)) is not None:
        raised = [root]  # a loader only says that its worker failed
    for failure in raised[-1:]:
        if failure.type in INTENDED:
            continue
        first_line = failure.message.split("\n", 1)[0][:200]
        text = f"{failure.type}: {first_line}" if first_line else failure.type
        text = text or "an exception without a name (the traceback is cut off)"
        yield Finding(
            claim=f"The run ended with {text}",
            strength=Strength.STRONG,
            evidence=(Evidence(raised_from(failure, text), failure.artifact, failure.locator),),
            is_symptom=True,
            onset=failure.step,
        )


_FRAME = Frame("train.py", 31, "main", "loss.backward()")
_FAILURE = Failure("RuntimeError", "something odd", "train.log", "line 90", (_FRAME,))
_LAUNCHER = Failure("ChildFailedError", "time : 2026", "train.log", "line 99")
_INTERRUPT = Failure("KeyboardInterrupt", "", "train.log", "line 90", (_FRAME,))

FIRES = {
    "an error nobody knows": make_run(failures=[_FAILURE]),
    "under a launcher": make_run(failures=[_FAILURE, _LAUNCHER]),
}

SILENT = {
    "near miss: stopped by hand": make_run(failures=[_INTERRUPT]),
    "no error": logged(loss_train=[1.0, 0.5]),
}
