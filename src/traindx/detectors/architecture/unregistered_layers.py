from traindx.analysis.program.execution.values import (
    Instance,
    Table,
)
from traindx.analysis.program.training.claims import each_place, finding, replace, source_text
from traindx.analysis.program.training.layers import (
    Assigned,
    is_bare_leaf,
    is_layer,
    is_parameter,
    layer_kind,
)
from traindx.analysis.program.training.stray_layers import made_in_forward, stray_members
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("unregistered-submodules",))
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
    for kept in each_place(run, stray_members, at=lambda k: k.event.node):
        yield _held(kept)
    for event in each_place(run, made_in_forward, at=lambda e: e.node):
        model = event.within[-1]
        owner = model.cls.node.name if isinstance(model, Instance) else "the model"
        yield finding(
            f"The forward pass of {owner} makes a new {source_text(event)} at each call",
            (event, "new random weights each time"),
        )


def _held(kept: Assigned) -> Finding:
    if is_bare_leaf(kept.value):
        return finding(
            f"Attribute self.{kept.name} is a tensor and no nn.Parameter: it does not train",
            (kept.event, "requires gradients, and is missing from parameters()"),
        )
    kind = "dict" if isinstance(kept.value, Table) else "list"
    kind = "object" if isinstance(kept.value, Instance) else kind
    return finding(
        f"Attribute self.{kept.name} keeps layers in a plain {kind}: they do not train",
        (kept.event, f"a plain {kind} with layers, missing from parameters()"),
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


_net = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {layers}
        {more:pass}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {out:x}
""")

_taught = template("""
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
""")

_OBJECT = """
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

_object = template(_OBJECT, made=_HEADS, base="", more="pass", after="")

_TWO = "nn.Linear(8, 8), nn.Linear(8, 8)"
_BARE_NORM = "nn.LayerNorm(8, elementwise_affine=False)(nn.InstanceNorm1d(8)(x))"

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
