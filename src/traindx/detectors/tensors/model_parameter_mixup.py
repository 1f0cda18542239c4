"""A function that takes a model gets its parameters, or the other way round."""

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Method, Part, Result, Value
from traindx.analysis.program.training.claims import callee_text, cite, finding, source_text
from traindx.analysis.program.training.kinds import Kind, kind_made_by
from traindx.analysis.program.training.layers import is_module
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

LISTS = (".parameters", ".named_parameters")
AVERAGES = "torch.optim.swa_utils.AveragedModel"
TAKES_PARAMETERS = frozenset(
    {"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_",
     "torch.nn.utils.parameters_to_vector"}
)  # fmt: skip


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
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            if event.act is not EventForm.CALL or event.is_own or event.node in seen:
                continue
            wanted = _mismatch(event)
            if wanted:
                seen.add(event.node)
                text, given = callee_text(event), _given(event)
                yield finding(
                    f"`{text}` takes {wanted[0]} and gets {wanted[1]}",
                    "api-misuse",
                    event,
                    cite(event, f"given: {source_text(given) if given is not None else '?'}"),
                    is_symptom=True,
                )


def _given(event: ProgramEvent) -> Value | None:
    found = event.args[0] if event.args else next(iter(event.kwargs.values()), None)
    return found if found is not None and found.site is not None else None


def _mismatch(event: ProgramEvent) -> tuple[str, str] | None:
    """Return what a call needs and what it gets, in words."""
    given = event.args[0] if event.args else event.kwargs.get("params")
    if given is None:
        return None
    is_optimizer = kind_made_by(event.name) is Kind.OPTIMIZER and event.name.startswith("torch.")
    if is_optimizer or event.name in TAKES_PARAMETERS:
        if is_module(given):
            return "parameters", "the model itself"
        return ("parameters", "a method that is not called") if _is_method(given) else None
    receiver = event.receiver
    if event.name == ".update_parameters" and isinstance(receiver, Result):
        is_list = isinstance(given, Result) and given.maker in LISTS
        return ("the model", "its parameters") if receiver.maker == AVERAGES and is_list else None
    if event.name == ".load_state_dict" and is_module(receiver):
        if is_module(given):
            return "a state dict", "a model"
        is_path = isinstance(given, Known) and isinstance(given.value, str)
        return ("a state dict", "the name of a file") if is_path else None
    return None


def _is_method(value: Value) -> bool:
    if isinstance(value, Method):
        return f".{value.name}" in LISTS
    return isinstance(value, Part) and f".{value.key}" in LISTS and is_module(value.of)


_PROGRAM = """
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

model = nn.Linear(4, 2)
ema = AveragedModel(model)
optimizer = torch.optim.SGD({given}, lr=0.1)
for x, y in loader:
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    {after}
"""


def _program(given: str = "model.parameters()", after: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(given=given, after=after)})


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
