import re

from traindx.analysis.metrics.halting import cite_halting
from traindx.examples import Event, make_run
from traindx.registry import Findings, Run, Strength, cite_event, detector, finding

_WARNING = re.compile(r"(?:var|std)\w*\(\): degrees of freedom is <= 0")


@detector(
    needs=("events",), suggests=("halting-collapse", "degenerate-batch", "batchnorm-small-batch")
)
def check(run: Run) -> Findings:
    """A variance is taken over a single value.

    ## What it detects
    PyTorch's warning `var(): degrees of freedom is <= 0`. If the file that warns, the
    configuration or the code speaks of halting, pondering or ACT, the halting steps have collapsed
    to one value; otherwise a batch of one example is as likely.

    ## Why it matters
    The result is NaN. In a loss it spreads to every weight; in a diversity term it means that all
    tokens take the same number of steps.

    ## What to do
    Print the number of values that enter the variance, and the distribution of halting steps.

    ## When it is wrong
    In a statistic that is only logged the warning is harmless. A last batch of one example gives it
    once an epoch.
    """
    told = [e for e in run.events if e.kind == "warning" and _WARNING.search(e.text)]
    if not told:
        return
    signs = list(cite_halting(run, told[0]))
    where = cite_event(told[0], "PyTorch warned: var(): degrees of freedom is <= 0")
    suggests = {"halting-collapse": Strength.STRONG}
    if not signs:
        suggests = {"degenerate-batch": Strength.MODERATE, "batchnorm-small-batch": Strength.WEAK}
        if not run.sources:  # the code could tell
            suggests["halting-collapse"] = Strength.WEAK
    about = "of the halting steps " if signs else ""
    yield finding(
        f"The variance {about}is taken over a single value and is NaN",
        suggests,
        where,
        *signs[:2],
        strength=Strength.STRONG if signs else Strength.MODERATE,
    )


def _warned(text: str = "UserWarning: var(): degrees of freedom is <= 0.") -> Event:
    return Event("warning", text, "train.log", "line 40", 12.0)


_CODE = "def loss(steps):\n    return -halting_steps.var()\n"

FIRES = {
    "in the file of the ACT head": make_run(
        events=[_warned("model/act_head.py:88: UserWarning: var(): degrees of freedom is <= 0.")]
    ),
    "pondering is configured": make_run(events=[_warned()], config={"model.ponder_cost": 0.01}),
    "the code takes it": make_run(events=[_warned()], sources={"model.py": _CODE}),
    "nothing more is known": make_run(events=[_warned()]),
}

SILENT = {
    "near miss: another warning about a variance": make_run(
        events=[_warned("RuntimeWarning: invalid value encountered in var")],
        config={"ponder_cost": 0.01},
    ),
    "near miss: halting without the warning": make_run(
        events=[_warned("UserWarning: lr_scheduler.step() before optimizer.step()")],
        sources={"model.py": _CODE},
    ),
    "the same words in another event": make_run(
        events=[Event("resume", "resumed: var(): degrees of freedom is <= 0", "a.log")]
    ),
}
