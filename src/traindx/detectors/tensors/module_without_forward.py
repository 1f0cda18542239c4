from traindx.analysis.errors.call_messages import NO_FORWARD
from traindx.analysis.errors.class_blame import missing_forward
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A module is called that defines no `forward`.

    ## What it detects
    'Module [Net] is missing the required "forward" function'. With the source, why: `forward`
    misspelt, or indented so that it stands outside of the class or inside of `__init__`. A
    ModuleList or ModuleDict that is called has none either.

    ## Why it matters
    The class looks complete; one level of indentation decides.

    ## What to do
    Indent `forward` as a method of the class; loop over the layers of a ModuleList, or use
    `nn.Sequential`.

    ## When it is wrong
    It is not: the message is exact.
    """
    yield from findings(run, NO_FORWARD, blame=lambda known: missing_forward(run, known["name"]))


_MODEL = """
from torch import nn
class Net(nn.Module):
    def foward(self, x):
        return x
"""
_ERROR = 'NotImplementedError: Module [Net] is missing the required "forward" function'

FIRES = {
    "the message alone": failed(_ERROR, "out = model(x)"),
    "misspelt": failed(_ERROR, sources={"model.py": _MODEL}),
    "a list of layers": failed(
        'NotImplementedError: Module [ModuleList] is missing the required "forward" function'
    ),
}

SILENT = {
    "near miss: an operator that is missing": failed(
        "NotImplementedError: \"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"
    ),
    "another error": failed("KeyError: 'label'"),
}
