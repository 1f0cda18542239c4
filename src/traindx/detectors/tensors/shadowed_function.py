"""The result of a call takes the name of what was called, or of something else that is needed."""

import builtins

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Choice, Items, Known, Result, Table, Value
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.claims import callee_text, cite, finding, name_apart
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import Assigned
from traindx.analysis.program.training.modes import overwritten_modes
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.tensors import is_computed_tensor, is_number
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "name-shadowed"
# methods of nn.Module by names that people give to what they keep
MODULE_METHODS = frozenset({"parameters", "modules", "children", "buffers", "state_dict", "train",
                            "eval", "type", "named_parameters", "forward"})  # fmt: skip


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A name that is called, or used as a library, holds a result instead.

    ## What it detects
    `loss = loss(output, target)` or `model = model(x)`, followed by another call of that name, as
    in a loop; a built-in such as `len` that holds a plain value and is called; and a library's name
    such as `F` that is bound to a size of a tensor and used as the library afterwards. An attribute
    `self.training` of a module that holds settings, which `train()` and `eval()` overwrite; and an
    attribute such as `self.parameters` that holds a list or dict and is called.

    ## Why it matters
    The first iteration works. The second calls a tensor: `'Tensor' object is not callable`.

    ## What to do
    Give the function and its result two names: `loss_fn` and `loss`.

    ## When it is wrong
    A name that is bound anew at the top of every iteration is right, and left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for event in story.events:
            if event.act is not EventForm.CALL or event.receiver is None or event.is_own:
                continue
            found = _judge(story, event)
            place = (event.function or event.module, callee_text(event).partition(".")[0])
            if found is not None and place not in seen:
                seen.add(place)
                yield found
        for kept, deed in overwritten_modes(story):
            if kept.event.node not in seen:
                seen.add(kept.event.node)
                yield _mode(kept, deed)


def _judge(story: Story, event: ProgramEvent) -> Finding | None:
    called = event.receiver
    if called is None or _is_uncertain(event, called):
        return None
    name = callee_text(event)
    last = name.rpartition(".")[2]
    if event.name != "()":
        root = name.partition(".")[0]
        is_hidden = root in event.module.aliases and root in called.names
        return _library(event, called, root) if is_hidden and is_number(called) else None
    if hasattr(builtins, name) and _is_plain(called):
        return _built_in(event, called, name)
    if isinstance(called, Result) and last in called.names:
        is_replaced = is_number(called) and story.program.defines(last)
        if is_replaced:
            return _method(event, called, last)
        return _tensor(story, event, called, name) if _is_output(called) else None
    is_needed = last in MODULE_METHODS or story.program.defines(last)
    if isinstance(called, (Items, Table, Known)) and is_needed and last in called.names:
        return _method(event, called, last) if _is_plain(called) else None
    return None


def _is_output(value: Result) -> bool:
    """Tell whether a value is what a layer or loss computes; torch.vmap gives a function."""
    is_function = value.maker.startswith("torch.") and ".functional." not in value.maker
    return not is_function and is_computed_tensor(value)


def _is_uncertain(event: ProgramEvent, called: Value) -> bool:
    """Tell whether the value is only one of several that may be called here."""
    tests = (guard.test for guard in event.guards)
    return any(isinstance(t, Choice) and called in t.options for t in tests)


def _is_plain(value: Value) -> bool:
    if isinstance(value, Known):
        return value.value is not None
    is_operator = isinstance(value, Result) and value.maker.startswith(("operator.", "str."))
    return is_operator or isinstance(value, (Items, Table))


def _tensor(story: Story, event: ProgramEvent, called: Result, name: str) -> Finding | None:
    made = next((e for e in story.events if e.result is called), None)
    if made is None:
        return None
    is_loss = story.kind_of(made.receiver).kind is Kind.LOSS
    kind = "loss" if is_loss else "model"
    how = f"`{name}` is a {kind} and is replaced by its own result"
    where = f"{how} inside a loop" if made.node is event.node else how
    return finding(
        where,
        CAUSE,
        made,
        cite(made, "the result takes the name here; the next call fails"),
        cite(event, f"{name} is called again here"),
        is_symptom=True,
        patch=name_apart(made) if is_loss else None,
    )


def _built_in(event: ProgramEvent, called: Value, name: str) -> Finding:
    at = event if called.site is None else called
    return finding(
        f"The built-in `{name}` is bound to a value and called afterwards",
        CAUSE,
        at,
        cite(at, f"{name} becomes a value here"),
        cite(event, "and is called here"),
        is_symptom=True,
    )


def _mode(kept: Assigned, deed: Deed) -> Finding:
    return finding(
        "self.training keeps settings, and train() and eval() write True or False there",
        CAUSE,
        kept.event,
        cite(kept.event, "kept under the name of the flag"),
        cite(deed.event, "overwrites it with True or False"),
        is_symptom=True,
    )


def _method(event: ProgramEvent, called: Value, name: str) -> Finding:
    kind = "list" if isinstance(called, Items) else "number"
    kind = "dict" if isinstance(called, Table) else kind
    hidden = "the method of nn.Module" if name in MODULE_METHODS else "the function of that name"
    return finding(
        f"`{name}` is a {kind} here and hides {hidden}: the call fails",
        CAUSE,
        event,
        cite(event, f"{name} holds a {kind}, which cannot be called"),
        is_symptom=True,
    )


def _library(event: ProgramEvent, called: Value, root: str) -> Finding:
    library = event.module.aliases[root]
    return finding(
        f"`{root}` is a size here and hides {library}: `{callee_text(event)}` fails",
        CAUSE,
        event,
        cite(event, f"{root} is used as {library}, but the function binds it to a number"),
        is_symptom=True,
    )


_LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 2)
{made} = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    {call}
    loss.backward()
    optimizer.step()
"""


def _loop(made: str, call: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(made=made, call=call)})


_TRAINER = """
from torch import nn

class Trainer:
    def __init__(self, model):
        self.model, self.loss = model, nn.MSELoss()

    def fit(self, loader):
        for x, y in loader:
            self.loss = self.loss(self.model(x), y)
            self.loss.backward()
"""
_SIZES = """
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        {names} = x.shape
        return F.relu(x).mean()
"""

_FLAG = """
from torch import nn

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        {kept}
        self.fc = nn.Linear(4, 2)

net = Net({given})
net.{after}
"""


def _flag(kept: str, given: str = "{'noise': 0.1}", after: str = "train()") -> Run:
    return make_run(sources={"t.py": _FLAG.format(kept=kept, given=given, after=after)})


FIRES = {
    "settings as self.training": _flag("self.training = config"),
    "settings that are set in a loop": _flag(
        "for k, v in config.items(): setattr(self, k, v)", "{'training': {'lr': 1}}", "eval()"
    ),
    "a list as self.parameters": _flag("self.parameters = [1]", after="parameters()"),
    "loss = loss(…)": _loop("loss", "loss = loss(model(data), target)"),
    "model = model(…)": _loop("loss_fn", "model = model(data); loss = loss_fn(model, target)"),
    "in a trainer of one's own": make_run(sources={"trainer.py": _TRAINER}),
    "a library hidden by a size": make_run(sources={"net.py": _SIZES.format(names="b, t, F")}),
    "a built-in": make_run(sources={"t.py": "len = 5\nfor x in data:\n    print(len(x))\n"}),
}

SILENT = {
    "near miss: the flag itself": _flag("self.training = True"),
    "near miss: out of sight": _flag("self.training = config", "config"),
    "near miss: another name": _flag("self.settings = config"),
    "near miss: sizes under other names": make_run(
        sources={"net.py": _SIZES.format(names="b, t, f")}
    ),
    "two names": _loop("criterion", "loss = criterion(model(data), target)"),
    "near miss: made anew in every iteration": _loop(
        "unused", "loss = nn.CrossEntropyLoss(); loss = loss(model(data), target)"
    ),
    "near miss: once, outside any loop": make_run(
        sources={
            "t.py": "from torch import nn\nloss = nn.MSELoss()\n"
            "loss = loss(a, b)\nloss.backward()\n"
        }
    ),
}
