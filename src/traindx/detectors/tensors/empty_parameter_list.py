from traindx.analysis.errors.call_messages import NO_PARAMETERS
from traindx.analysis.errors.class_blame import why_no_parameters
from traindx.analysis.errors.messages import causes_in, finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(NO_PARAMETERS))
def check(run: Run) -> Findings:
    """An optimizer gets an empty list of parameters.

    ## What it detects
    "optimizer got an empty parameter list", and DistributedDataParallel's word for a model that is
    frozen as a whole. With the source, why: layers in a plain list or dict,
    a filter on `requires_grad` after everything was frozen, or a generator that was used up.

    ## Why it matters
    The message is the lucky case: with one registered layer the model would have trained without
    the others and said nothing.

    ## What to do
    Hold layers in `nn.ModuleList` or `nn.ModuleDict`, unfreeze what should train, and call
    `model.parameters()` anew for each use.

    ## When it is wrong
    A model with lazy or later-added layers has no parameters yet: make the optimizer afterwards.
    """
    known = known_error(run, NO_PARAMETERS)
    if known is not None:
        is_empty = known.kind == "optimizer"
        cause, culprit = why_no_parameters(run) if is_empty else (None, None)
        yield finding(known, cause=cause, culprit=culprit)


_MODEL = """
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 1)]
"""
_ERROR = "ValueError: optimizer got an empty parameter list"
_CODE = "optimizer = torch.optim.Adam(model.parameters())"

FIRES = {
    "frozen, under DDP": failed(
        "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any "
        "parameters that require a gradient.",
        "model = DDP(model)",
    ),
    "the message alone": failed(_ERROR, _CODE),
    "a plain list": failed(_ERROR, _CODE, sources={"model.py": _MODEL}),
}

SILENT = {
    "near miss: parameters twice": failed(
        "ValueError: some parameters appear in more than one parameter group", _CODE
    ),
    "another error": failed("KeyError: 'label'"),
}
