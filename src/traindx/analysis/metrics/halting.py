"""What says that a model decides itself when to halt."""

import re
from collections.abc import Iterator

from traindx.analysis.program.training.claims import source_text
from traindx.analysis.program.training.program import program_of
from traindx.model.findings import Evidence, cite_event, cite_setting
from traindx.model.run import Event, Run

_HALTING = re.compile(r"halt|ponder|(?<![a-z])act(?![a-z])|adaptive[_ ]?comput", re.IGNORECASE)
_SWITCHED_OFF = (False, None, 0, "", "false", "none")


def cite_halting(run: Run, warning: Event) -> Iterator[Evidence]:
    """Yield what says that the model decides itself when to halt."""
    if _HALTING.search(warning.text.replace("/", " ").replace("_", " ")):
        yield cite_event(warning, f"it came from {warning.text.split(':', 1)[0]}")
    for computed in program_of(run).results("var", "std"):
        names = {name for value in computed.operation.operands for name in value.names}
        if any(_HALTING.search(name.replace("_", " ")) for name in names):
            yield computed.event.cite(f"the code has {source_text(computed.event)[:80]}")
            break
    for setting in run.config.settings:
        key = setting.key.replace("_", " ").replace(".", " ")
        if _HALTING.search(key) and setting.value not in _SWITCHED_OFF:
            yield cite_setting(setting)
    for name, series in run.series.items():
        if name.startswith(("loss/", "other/")) and re.search(r"halt|ponder", name, re.I):
            says = f"the run logs {series.origin.name}"
            yield Evidence(says, series.origin.artifact, series.where(0))
