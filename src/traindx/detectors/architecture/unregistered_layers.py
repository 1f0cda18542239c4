"""Layers that nn.Module does not see: in plain lists and dicts, or made anew in forward."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Result,
    Table,
    Value,
    depends_on,
    options_of,
)
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, finding, replace, source_text
from traindx.analysis.program.training.layers import (
    Assigned,
    assigned,
    forward_passes,
    has_weights,
    is_bare_leaf,
    is_layer,
    is_module,
    is_parameter,
    kept_apart,
    layer_kind,
    models_made,
    registered,
)
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "unregistered-submodules"
# calls that hand the weights of a module on, or put it into evaluation mode for good
HANDED = frozenset({".parameters", ".named_parameters", ".state_dict", ".eval", ".children"})
REGISTERS = frozenset({".add_module", ".register_module", ".register_parameter"})
LOADED = frozenset({".load_state_dict", ".copy_"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Layers are kept where nn.Module does not see them.

    ## What it detects
    An attribute of a model that is a plain list, tuple or dict of layers or parameters, or an
    object of a class that is no `nn.Module` and holds such, through which gradients flow and that
    nothing registers; and layers with weights that a forward pass
    makes anew at each call and uses.

    ## Why it matters
    Such layers are missing from `parameters()`, so the optimizer never changes them; they stay on
    the CPU when the model moves, and are not saved. No error says so.

    ## What to do
    Hold them in `nn.ModuleList` or `nn.ModuleDict`, made in `__init__`; derive a class that holds
    layers from `nn.Module`.

    ## When it is wrong
    Layers that are registered elsewhere too (`nn.Sequential(*self.layers)`, `add_module`), or kept
    out of sight on purpose, such as a teacher alone in a list, or frozen, or called without
    gradients, are fine. Layers without weights, as `nn.InstanceNorm2d` by default, are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        if is_test_file(story.execution.module):
            continue
        for kept in assigned(story.events):
            place = kept.event.node
            if place not in seen and _is_unregistered(story, kept):
                seen.add(place)
                yield _held(kept)
        for event in _made_in_forward(story):
            if event.node not in seen:
                seen.add(event.node)
                yield _made(event)


def _is_unregistered(story: Story, kept: Assigned) -> bool:
    """Tell whether a plain list, dict or object holds layers that train and nothing registers."""
    if is_bare_leaf(kept.value):
        is_used = _is_still_there(kept) and _trains(story, kept.value, None)
        return is_used and not _is_hidden(story, kept.value)
    is_object = isinstance(kept.value, Instance) and not is_module(kept.value)
    if not (is_object or isinstance(kept.value, (Items, Table))):
        return False
    members = kept_apart(kept.value)
    kinds = [m for m in members if has_weights(m) is Answer.YES]
    is_for_layers = len(kinds) * 2 > len(members) or (is_object and bool(kinds))
    if not is_for_layers or not _is_still_there(kept):
        return False
    layers = [option for m in kinds for option in options_of(m)]
    if len(members) == 1 and isinstance(members[0], Instance):
        return False  # a model alone in a list: a known way to hide a teacher from torch
    known = [p for m in models_made(story.events) for p in registered(m) if p is not m]
    if any(layer is part for layer in layers for part in known):
        return False
    parts = [part for layer in layers for part in registered(layer)] if is_object else layers
    trained = [m for m in parts if _trains(story, m, kept.model if is_object else None)]
    return bool(trained) and not any(_is_hidden(story, m) for m in parts)


def _is_still_there(kept: Assigned) -> bool:
    """Tell whether the attribute is not replaced later, by a ModuleList of the same layers."""
    return kept.model.fields.get(kept.name) is kept.value


def _trains(story: Story, layer: Value, model: Value | None) -> bool:
    """Tell whether gradients flow through a layer or parameter where it, or a model, is used."""
    if is_parameter(layer) or is_bare_leaf(layer):
        takers = [e for e in story.flow.takers(layer) if e.act is EventForm.CALL and not e.is_own]
        return any(e.gradients is Answer.YES and operation_of(e.result) for e in takers)
    for event in forward_passes(story.events, layer):
        if model is not None and model not in event.within:
            continue
        users = [] if event.result is None else story.flow.users(event.result)
        cut = [u for u in users if isinstance(u, Result) and u.maker == ".detach"]
        if event.gradients is Answer.YES and (not users or len(cut) < len(users)):
            return True
    return False


def _is_hidden(story: Story, layer: Value) -> bool:
    """Tell whether the weights of a layer go elsewhere by hand, or are frozen."""
    for event in story.events:
        if event.receiver is layer and event.name in HANDED | {".requires_grad_"}:
            return True
        is_switch = event.act is EventForm.STORE and event.name == "requires_grad"
        if is_switch and event.receiver is not None and depends_on(event.receiver, layer):
            return True
        if event.name in REGISTERS and any(a is layer for a in event.args):
            return True
        given = event.argument("params", 0) if event.name.startswith("torch.optim.") else None
        is_tensor = is_parameter(layer) or is_bare_leaf(layer)
        if is_tensor and given is not None and depends_on(given, layer):
            return True
    return False


def _held(kept: Assigned) -> Finding:
    if is_bare_leaf(kept.value):
        return finding(
            f"Attribute self.{kept.name} is a tensor and no nn.Parameter: it does not train",
            CAUSE,
            kept.event,
            cite(kept.event, "requires gradients, and is missing from parameters()"),
            is_symptom=True,
        )
    kind = "dict" if isinstance(kept.value, Table) else "list"
    kind = "object" if isinstance(kept.value, Instance) else kind
    return finding(
        f"Attribute self.{kept.name} keeps layers in a plain {kind}: they do not train",
        CAUSE,
        kept.event,
        cite(kept.event, f"a plain {kind} with layers, missing from parameters()"),
        is_symptom=True,
        patch=_patch(kept),
    )


def _patch(kept: Assigned) -> str | None:
    """Put the list into a ModuleList, the dict into a ModuleDict, written as its layers are."""
    if isinstance(kept.value, Instance):
        return None
    layers = [v for v in kept.value.fields.values() if is_layer(v)]
    has_names = all(isinstance(k, str) for k in kept.value.fields)
    is_dict = isinstance(kept.value, Table)
    if not layers or (is_dict and not has_names):
        return None
    prefix = source_text(layers[0]).partition(layer_kind(layers[0]))[0]
    family = "Parameter" if is_parameter(layers[0]) else "Module"
    text = source_text(kept.value)
    holder = f"{prefix}{family}{'Dict' if is_dict else 'List'}"
    return replace(kept.value, f"{holder}({'' if text in ('[]', '{}') else text})")


def _made_in_forward(story: Story) -> Iterator[ProgramEvent]:
    """Yield where a forward pass makes layers with weights, uses them, and drops them again."""
    for event in story.events:
        layer = event.result
        if not event.within or layer is None or layer.site is not event.site:
            continue
        if event.gradients is Answer.NO or not is_layer(layer) or is_parameter(layer):
            continue
        is_used = any(e.within for e in forward_passes(story.events, layer))
        if is_used and has_weights(layer) is Answer.YES and not _is_kept(story, layer):
            yield event


def _is_kept(story: Story, layer: Value) -> bool:
    """Tell whether a layer becomes an attribute, or is given weights from elsewhere."""
    for event in story.events:
        if event.act is EventForm.STORE and any(a is layer for a in event.args):
            return True
        is_written = event.act is EventForm.STORE or event.name in LOADED
        if is_written and event.receiver is not None and depends_on(event.receiver, layer):
            return True
    return False


def _made(event: ProgramEvent) -> Finding:
    model = event.within[-1]
    owner = model.cls.node.name if isinstance(model, Instance) else "the model"
    return finding(
        f"The forward pass of {owner} makes a new {source_text(event)} at each call",
        CAUSE,
        event,
        cite(event, "new random weights each time"),
        is_symptom=True,
    )


_NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {layers}
        {more}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {out}
"""


_TEACHER = """
import torch
from torch import nn

class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)

class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.teachers = [{teachers}]

    def forward(self, x):
        {guide}
        return ((Swish()(self.fc(x)) - goal) ** 2).mean()
"""


def _taught(teachers: str, guide: str) -> Run:
    text = _TEACHER.format(teachers=teachers, guide=guide)
    return make_run(sources={"model.py": text})


_OBJECT = """
import torch
from torch import nn

class Bank{base}:
    def __init__(self, n):
        {made}

    def predict(self, x):
        return sum(head(x) for head in self.heads)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.bank = Bank(2)
        {more}

    def forward(self, x):
        return self.bank.predict(self.trunk(x))

net = Net()
{after}
net(torch.randn(2, 8)).sum().backward()
"""
_HEADS = "self.heads = [nn.Linear(8, 1) for _ in range(n)]"


def _object(made: str = _HEADS, base: str = "", more: str = "pass", after: str = "") -> Run:
    text = _OBJECT.format(base=base, made=made, more=more, after=after)
    return make_run(sources={"model.py": text})


_TWO = "nn.Linear(8, 8), nn.Linear(8, 8)"
_BARE_NORM = "nn.LayerNorm(8, elementwise_affine=False)(nn.InstanceNorm1d(8)(x))"


def _net(layers: str, more: str = "pass", out: str = "x") -> Run:
    return make_run(sources={"model.py": _NET.format(layers=layers, more=more, out=out)})


FIRES = {
    "a list": _net("[nn.Linear(8, 8), nn.Linear(8, 8)]"),
    "a list that a comprehension makes": _net("[nn.Linear(8, 8) for _ in range(3)]"),
    "a list that is filled": _net("[]", "self.layers.append(nn.Linear(8, 8))"),
    "a layer alone in a list": _taught("nn.Linear(8, 8)", "goal = self.teachers[0](x)"),
    "a list that gradients go through": _taught(_TWO, "goal = sum(t(x) for t in self.teachers)"),
    "a list in a plain object": _object(),
    "a ModuleList in a plain object": _object(
        "self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(n))"
    ),
    "a layer made in forward": _net("nn.ModuleList()", out="nn.Linear(8, 2)(x)"),
}

SILENT = {
    "near miss: an object that is a module": _object(
        "super().__init__(); self.heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(n))",
        "(nn.Module)",
    ),
    "near miss: an object of registered layers": _object(
        more="self.heads = nn.ModuleList(self.bank.heads)"
    ),
    "near miss: the optimizer gets them by hand": _object(
        after="opt = torch.optim.SGD([p for h in net.bank.heads for p in h.parameters()], lr=0.1)"
    ),
    "a ModuleList": _net("nn.ModuleList([nn.Linear(8, 8)])"),
    "near miss: registered beside": _net(
        "[nn.Linear(8, 8)]", "self.net = nn.Sequential(*self.layers)"
    ),
    "near miss: activations have no weights": _net("[nn.ReLU(), nn.Tanh()]", out="nn.ReLU()(x)"),
    "near miss: a teacher alone in a list": _taught("Teacher()", "goal = self.teachers[0](x)"),
    "near miss: its output is cut off": _taught(
        "nn.Linear(8, 8)", "goal = self.teachers[0](x).detach()"
    ),
    "near miss: teachers without gradients": _taught(
        _TWO, "with torch.no_grad():\n            goal = sum(t(x) for t in self.teachers)"
    ),
    "near miss: normalisations without weights": _net("nn.ModuleList()", out=_BARE_NORM),
    "a list of numbers": _net("[1, 2, 3]"),
}
