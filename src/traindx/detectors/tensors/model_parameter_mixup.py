from traindx.analysis.program.training.claims import callee_text, cite, each_place, finding
from traindx.analysis.program.training.mixups import mixups
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A call gets a model where it needs parameters, or parameters where it needs a model.

    ## What it detects
    An optimizer or `clip_grad_norm_` that is given a model, or its method `parameters` without a
    call; `AveragedModel.update_parameters` that is given parameters; `load_state_dict` that is
    given a model or the name of a file.

    ## Why it matters
    The call fails with a TypeError or AttributeError when it is reached, which may be after an
    epoch.

    ## What to do
    Pass what the function is documented to take.

    ## When it is wrong
    Objects of classes out of sight are left alone.
    """
    for found in each_place(run, mixups, lambda mixup: mixup.call.node):
        claim = f"`{callee_text(found.call)}` takes {found.needed} and gets {found.got}"
        argument = cite(found.call, f"the argument is {found.given}")
        yield finding(claim, argument, at=found.call)


_program = template("""
from torch.optim.swa_utils import AveragedModel

model = nn.Linear(4, 2)
ema = AveragedModel(model)
optimizer = torch.optim.SGD({given:model.parameters()}, lr=0.1)
for x, y in loader:
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    {after:pass}
""")

FIRES = {
    "a model for an optimizer": _program("model"),
    "a method that is not called": _program("model.parameters"),
    "parameters for an average": _program(after="ema.update_parameters(model.parameters())"),
    "the name of a file": _program(after="model.load_state_dict('best.pt')"),
}

SILENT = {
    "parameters": _program(after="ema.update_parameters(model)"),
    "near miss: groups": _program('[{"params": model.parameters()}]'),
    "near miss: a helper of one's own": _program(after="ema.refresh(model.parameters())"),
    "near miss: a loaded state": _program(after="model.load_state_dict(torch.load('best.pt'))"),
}
