from dataclasses import replace

from traindx.analysis.program.training.claims import cite, finding, program_of
from traindx.analysis.program.training.idle_layers import IdleMembers
from traindx.analysis.program.training.unused_parts import (
    unreached_members,
    unused_layers,
)
from traindx.examples import script, template
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, Strength, detector

CAUSE = "unused-parameters"


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A module builds a layer that nothing it computes depends on.

    ## What it detects
    An attribute of a module that holds a layer with weights and that no code reads; and a layer
    that the forward pass calls, where nothing that it returns, keeps or trains on was computed from
    the result. Also a member of an `nn.ModuleList` that the forward pass never reaches while it
    calls the others, as where `zip` stops at a shorter list.

    ## Why it matters
    The weights never get a gradient. They cost memory, mislead the parameter count, and make
    DistributedDataParallel wait for gradients that do not come. Often the forward pass calls
    another layer twice where this one was meant, or forgets to use what it computed.

    ## What to do
    Call the layer where it was meant, use its result, or delete it.

    ## When it is wrong
    Code that reaches layers by other ways (`children()`, `getattr`) is left alone; code outside of
    the files at hand may use the layer.
    """
    program = program_of(run)
    for unused in unused_layers(program):
        kept, call, strength = unused.kept, unused.call, unused.strength
        how = "built and never used" if call is None else "called and no loss depends on it"
        is_shown = strength is Strength.STRONG
        found = finding(
            f"Layer self.{kept.name} of {kept.model.cls.node.name} is {how}",
            (kept.event, f"no code reads .{kept.name}" if call is None else "built here"),
            *([] if call is None else [cite(call, "nothing is computed from this result")]),
            strength=strength,
            hint=None if is_shown else strength,
            is_symptom=is_shown,
        )
        yield replace(found, suggests={CAUSE: strength})
    for idle in unreached_members(program):
        yield _unreached(idle)


def _unreached(idle: IdleMembers) -> Finding:
    name, which = idle.kept.name, ", ".join(str(place) for place in idle.places)
    if idle.is_called:
        return finding(
            f"Nothing comes of self.{name}[{which}]: each layer gets the same input, and only the "
            "last one's result is used",
            (idle.kept.event, "built here"),
            (idle.call, "each turn puts its result in the place of the one before"),
            at=idle.call,
        )
    return finding(
        f"The forward pass of {idle.kept.model.cls.node.name} never calls self.{name}[{which}]",
        (idle.kept.event, "built here"),
        (idle.call, f"the others are called here, and number {which} never"),
        at=idle.call,
    )


_net = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 8)
        self.fc2 = nn.Linear(8, 8)

    def forward(self, x):
        {body}
""")

FIRES = {
    "a layer called twice in place of another": _net("return self.fc1(self.fc1(x))"),
    "a gate that is computed and not applied": _net(
        "gate = self.fc2(x).sigmoid()\n        return self.fc1(x)"
    ),
}

_members_of = template("""
class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.convs = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.norms = nn.ModuleList([nn.LayerNorm(8) for _ in range({norms:n - 1})])

    def forward(self, x):
        {body}
        return x

out = Net()(torch.randn(4, 8))
""")

FIRES |= {
    "a list that zip cuts short": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))"
    ),
    "a list that is gone through without its end": _members_of(
        "for conv in self.convs[:-1]:\n            x = conv(x)\n"
        "        for norm in self.norms: x = norm(x)"
    ),
    "a place that is called twice": _members_of(
        "x = self.convs[0](x); x = self.norms[0](self.convs[1](x)); x = self.convs[1](x)", "1"
    ),
}

_LISTS = """
class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, parts):
        return [self.left(parts[0]), self.right(parts[1])]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage = nn.Sequential(Stage(), Stage())

    def forward(self, x):
        x = self.stage([x, x])
        return x[0] + x[1]
"""

_BLOCKS = """
class Net(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            {body}
        return z

net = Net()
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    opt.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""
_blocks = template(_BLOCKS, "body")

FIRES |= {"every block on the first input": _blocks("z = block(x).relu() + x")}
SILENT = {
    "near miss: block on block": _blocks("z = x = block(x).relu()"),
    "near miss: all of them summed": _blocks("x = z = x + block(x)"),
    "near miss: the last one by its place": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))\n"
        "        x = self.convs[-1](x)"
    ),
    "near miss: a list that is run whole": _members_of(
        "for conv, norm in zip(self.convs, self.norms):\n            x = norm(conv(x))", "n"
    ),
    "near miss: as many as are wanted": _members_of(
        "for conv, norm in zip(self.convs[:wanted], self.norms):\n            x = norm(conv(x))"
    ),
    "near miss: one by a name that the data give": _members_of(
        "x = self.convs[int(x.sum())](self.norms[int(x.mean())](x))"
    ),
    "near miss: added to a list that is paired with names": _net(
        "parts, names = [self.fc1(x)], ['a']\n        parts.extend([self.fc2(x)])\n"
        "        names.extend(more)\n        return dict((k, v) for k, v in zip(names, parts))"
    ),
    "near miss: a stage that gives a list": script("""
class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, parts):
        return [self.left(parts[0]), self.right(parts[1])]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage = nn.Sequential(Stage(), Stage())

    def forward(self, x):
        x = self.stage([x, x])
        return x[0] + x[1]
"""),
    "near miss: in a function that a library calls": _net(
        "graph.update_all(self.message)\n        return self.fc1(x)\n\n"
        "    def message(self, edges):\n        return {'m': edges.src * self.fc2(edges.data)}"
    ),
    "all are used": _net("return self.fc2(self.fc1(x))"),
    "near miss: written into another tensor": _net(
        "out = x.clone()\n        out[:, :4] = self.fc2(self.fc1(x))\n        return out"
    ),
    "near miss: decides what is computed": _net(
        "if self.fc2(x).mean() > 0:\n            return self.fc1(x)\n        return x"
    ),
    "near miss: kept for a loss elsewhere": _net("self.aux = self.fc2(x); return self.fc1(x)"),
    "near miss: reached by its name": _net("return getattr(self, 'fc2')(self.fc1(x))"),
    "near miss: reached as a child": _net("return [layer(x) for layer in self.children()][-1]"),
}
