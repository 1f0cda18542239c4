import re

from traindx.examples import Event, make_run
from traindx.registry import Findings, Run, cite_event, detector, finding

MESSAGE = re.compile(
    r"torch\._dynamo hit config\.(?:recompile_limit|cache_size_limit|accumulated_\w+) \((\d+)\)"
    r"|(?:recompile_limit|cache_size_limit) (?:reached|hit)"
)


@detector(needs=("events",), suggests=("recompilation",))
def check(run: Run) -> Findings:
    """torch.compile recompiled a function until it hit the limit.

    ## What it detects
    The warning "torch._dynamo hit config.recompile_limit (8)", in older versions
    "cache_size_limit".

    ## Why it matters
    Every compilation costs seconds to minutes, and from the limit on the function runs uncompiled.

    ## What to do
    `TORCH_LOGS=recompiles` names the guard that fails: mark changing sizes as dynamic, pad to a few
    fixed sizes, and keep Python numbers that change out of the compiled function.

    ## When it is wrong
    A model that is compiled once per size on purpose needs a higher limit.
    """
    for event in run.events:
        found = MESSAGE.search(event.text)
        if found is not None:
            limit = f" of {found[1]}" if found[1] else ""
            claim = f"A compiled function hit the recompile limit{limit}"
            yield finding(claim, "recompilation", cite_event(event), onset=event.step)
            return


def _warned(text: str) -> Run:
    return make_run(events=[Event("warning", text, "train.log", "line 12")])


FIRES = {"the limit": _warned("torch._dynamo hit config.recompile_limit (8)")}

SILENT = {
    "near miss: one recompilation": _warned("Recompiling function forward in model.py:10"),
    "another warning": _warned("UserWarning: lr_scheduler.step() before optimizer.step()"),
}
