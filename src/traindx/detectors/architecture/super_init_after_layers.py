from traindx.analysis.errors.call_messages import LATE_SUPER_INIT
from traindx.analysis.errors.class_blame import missing_super_init
from traindx.analysis.errors.culprits import Culprit
from traindx.analysis.errors.messages import KnownError, findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("missing-super-init",))
def check(run: Run) -> Findings:
    """A module assigns layers before `super().__init__()` has run.

    ## What it detects
    "cannot assign module before Module.__init__() call", or a missing `_modules`, `_parameters` or
    `_backward_hooks` on first use.

    ## Why it matters
    The registries in which layers are kept do not exist yet.

    ## What to do
    Call `super().__init__()` as the first statement of `__init__`.

    ## When it is wrong
    A module unpickled from another version of torch may lack a registry too.
    """
    yield from findings(run, LATE_SUPER_INIT, blame=_class)


def _class(known: KnownError) -> Culprit | None:
    return missing_super_init(known.run, known.failure, known["owner"])


_MODEL = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(8, 1)
"""
_ERROR = "AttributeError: cannot assign module before Module.__init__() call"

FIRES = {
    "never called": failed(_ERROR, "self.fc = nn.Linear(8, 1)", sources={"m.py": _MODEL}),
    "noticed on first use": failed(
        "AttributeError: 'Net' object has no attribute '_backward_hooks'", "out = model(x)"
    ),
}

SILENT = {
    "near miss: an attribute of the user's own": failed(
        "AttributeError: 'Net' object has no attribute 'fc2'"
    ),
    "another error": failed("KeyError: 'label'"),
}
