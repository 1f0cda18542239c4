from traindx.analysis.program.execution.values import Site
from traindx.analysis.program.training.claims import (
    cite,
    finding,
    insert_first,
    move_first,
    program_of,
)
from traindx.analysis.program.training.super_calls import BareCall, EarlyLayer, unready_modules
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, detector

BUILDERS = ("__init__", "__post_init__")


@detector(needs=("source",), suggests=("missing-super-init",))
def check(run: Run) -> Findings:
    """A module gets its layers before, or without, `super().__init__()`.

    ## What it detects
    An object of a class that derives from `nn.Module` is given its first layer or parameter while
    the constructor of `nn.Module` has not run, whether in `__init__`, in a method that it calls, or
    in the `__post_init__` of a dataclass; or it has no layers, such as a loss, and is called so.

    ## Why it matters
    The registries of layers do not exist yet: constructing the model fails.

    ## What to do
    Make `super().__init__()` the first statement; of a dataclass, the first of `__post_init__`.

    ## When it is wrong
    A class without an `__init__` of its own needs no call. A class that something out of sight
    decorates, or hands its object to, may be initialised there and is left alone.
    """
    for found in unready_modules(program_of(run)):
        yield _assigned(found) if isinstance(found, EarlyLayer) else _called(found)


def _called(call: BareCall) -> Finding:
    builder = next(n for n in call.cls.node.body if getattr(n, "name", "") == "__init__")
    return finding(
        f"Class {call.cls.node.name} has an __init__ without super().__init__() and is called",
        (call.built, "built here, and nn.Module is not initialised"),
        (call.event, "called here: nn.Module looks for its hooks and has none"),
        at=Site(call.cls.module, builder),
    )


def _assigned(early: EarlyLayer) -> Finding:
    event, late = early.first.event, early.late
    how = "without super().__init__()" if late is None else "before super().__init__()"
    is_builder = getattr(event.function, "name", "") in BUILDERS and early.is_alone
    patch = insert_first(event, "super().__init__()") if late is None else move_first(late)
    return finding(
        f"Class {early.first.model.cls.node.name} assigns layers {how}",
        (event, f"a layer is assigned here {how}"),
        *([] if late is None else [cite(late, "the parent is initialised only here")]),
        patch=patch if is_builder else None,
    )


_net = template("""
from dataclasses import dataclass

{decorator:}
class Net(nn.Module):
    def __init__(self, width):
        {first}
        self.fc = nn.Linear(width, 10)
        {last:self.width = width}
""")

_BUILT = """
class Net(nn.Module):
    def __init__(self, width):
        {first}
        self.build(width)

    def build(self, width):
        self.fc = nn.Linear(width, 10)

model = Net(8)
"""
_record = template("""
from dataclasses import dataclass

@dataclass(eq=False)
class Net(nn.Module):
    width: int = 8

    def __post_init__(self):
        {first:super().__init__()}
        self.fc = nn.Linear(self.width, 10)
""")

_LOSS = """
class Contrast(nn.Module):
    def __init__(self, scale=0.5):
        {first}
        self.scale = scale

    def forward(self, a, b):
        return (a @ b.T / self.scale).logsumexp(1).mean()

net, loss = nn.Linear(8, 4), Contrast()
value = loss{call}(net(torch.randn(16, 8)), net(torch.randn(16, 8)))
"""

FIRES = {
    "a loss without layers, called": script(_LOSS, first="pass", call=""),
    "no call": _net("self.depth = 1"),
    "too late": _net("self.depth = 1", last="super().__init__()"),
    "in a method that __init__ calls": script(_BUILT, first="pass"),
    "in a dataclass": _record("pass"),
}

SILENT = {
    "a loss that calls it": script(_LOSS, first="super().__init__()", call=""),
    "near miss: only its forward is called": script(_LOSS, first="pass", call=".forward"),
    "first of all": _net("super().__init__()"),
    "near miss: layers in a method that __init__ calls": script(_BUILT, first="super().__init__()"),
    "near miss: a dataclass that calls it": _record(),
    "near miss: the old form": _net("super(Net, self).__init__()"),
    "near miss: by the parent's name": _net("nn.Module.__init__(self)"),
    "no __init__ of its own": script(
        "from torch import nn\nclass A(nn.Module):\n    layer = nn.ReLU()\n"
    ),
}
