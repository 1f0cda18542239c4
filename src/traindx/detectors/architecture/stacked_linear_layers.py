from traindx.analysis.program.training.claims import (
    finding,
    insert_argument_after,
    program_of,
    source_text,
)
from traindx.analysis.program.training.linear_stacks import LinearStack, linear_stacks
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("missing-nonlinearity",))
def check(run: Run) -> Findings:
    """Linear layers follow each other without a nonlinearity between them.

    ## What it detects
    A model with at least three linear or convolutional layers one behind the other, of which
    everything that the forward pass computes is a sum, reshape, mean, dropout or batch
    normalisation: it is linear as a whole. Three linear layers in a chain, or two that meet in a
    middle wider than both ends, wherever in a model. Also, as a weaker remark, a linear layer whose
    output goes to the next linear layer and nowhere else, directly or through dropout, where the
    middle is as wide as one of its ends.

    ## Why it matters
    Linear maps in a row are one linear map: however deep, they learn no more than one layer can.

    ## What to do
    Put an activation such as `torch.relu` after every layer but the last.

    ## When it is wrong
    Deep linear networks are studied, and low-rank maps, adapters and projections are factorised;
    narrow middles and models with such names are left alone, and so are convolutions in groups, and
    classes that are part of another model, for what bends may follow there. Heads on one trunk that
    compresses are not deep.
    """
    for stack in linear_stacks(program_of(run)):
        yield _pair(stack) if stack.pairs else _deep(stack)


def _deep(stack: LinearStack) -> Finding:
    first, last, count = stack.layers[0], stack.layers[-1], len(stack.layers)
    return finding(
        f"{count} layers are one linear map: nothing between them is nonlinear",
        (first, f"{source_text(first)} is the first of {count} layers"),
        (last, f"{source_text(last)} is the last"),
    )


def _pair(stack: LinearStack) -> Finding:
    first, second = stack.layers
    strength = Strength.MODERATE if stack.pairs > 1 else Strength.WEAK
    prefix = source_text(first).partition("Linear")[0]
    is_plain = stack.is_in_sequential
    return finding(
        f"`{source_text(first)}` and `{source_text(second)}` follow each other without a "
        "nonlinearity",
        (first, f"{source_text(first)} goes straight to the next"),
        (second, source_text(second)),
        strength=strength,
        hint=strength,
        patch=insert_argument_after(first, f"{prefix}ReLU()") if is_plain else None,
        is_symptom=False,
    )


_net = template("""
class {name:Net}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 256)
        self.fc2 = nn.Linear(256, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = {first}(self.fc1(x))
        x = {first}(self.fc2(x))
        return self.fc3(x)
""")

_CHAIN = """
model = nn.Sequential(nn.Linear(784, {width}), {more} nn.Linear({width}, {out}))
"""
_chain = template(_CHAIN, more="", width=256, out=10)

_deep_net = template("""
class {name:Net}(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(20, 64)
        self.mid = nn.Linear(64, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, x, t):
        h = torch.cat([x, torch.sin(t)], 1)
        h = {act:}(self.inp(h))
        h = h + {act}(self.mid(h))
        {more:}
        return self.out(h)
{user:}
""")
_USER = """
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Net()

    def forward(self, x, t):
        return F.relu(self.inner(x, t))
"""
_cnn = template("""
{name:model} = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8),{pool:} nn.Conv2d(8, 16, 3), nn.Flatten(),
    nn.Linear(16 * 28 * 28, 10),
)
""")

_grown_net = template("""
class Perceptron(nn.Module):
    def __init__(self, sizes, rate):
        super().__init__()
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers.append(nn.Linear(before, after))
            {between}
        self.chain = nn.Sequential(*layers)

    def forward(self, x):
        {forward:return self.chain(x)}
""")
_ONE_BY_ONE = """for layer in self.chain[:-1]:
            x = layer(x).relu()
        return self.chain[-1](x)"""
_heads = template("""
class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear({wide}, 64)
        self.mood = nn.Linear(64, 3)
        self.topic = nn.Linear(64, 20)

    def forward(self, x):
        h = self.trunk(x)
        return self.mood(h), self.topic(h)
""")

FIRES = {
    "three in a row": _net(""),
    "two in a chain": _chain("nn.Dropout(0.1),"),
    "grown in a loop": _grown_net("layers.append(nn.Dropout(rate))"),
    "with a skip connection": _deep_net(),
    "scaled": _deep_net(more="h = h * 0.5"),
    "two heads on a trunk that widens": _heads(4),
    "convolutions": _cnn(),
}

SILENT = {
    "near miss: a size is asked for without the activations": script("""
class Encoder(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.a, self.b, self.c = nn.Conv1d(1, 8, 3), nn.Conv1d(8, 16, 3), nn.Conv1d(16, 32, 3)
        with torch.no_grad():
            width = self.c(self.b(self.a(torch.randn(1, 1, 32)))).numel()
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        x = self.c(torch.relu(self.b(torch.relu(self.a(x)))))
        return self.out(torch.relu(x).flatten(1))
"""),
    "near miss: features are fused after layers that bend": script("""
class Upscaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.fuse, self.mix, self.tail = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 3, 3)

    def forward(self, x):
        x = torch.relu(self.body(torch.relu(self.first(x))))
        return self.tail(self.mix(self.fuse(x)) + x)
"""),
    "an activation between": _net("torch.relu"),
    "near miss: a deep linear network, as it is studied": _net("", name="DeepLinearNetwork"),
    "near miss: a module as activation": _chain("nn.GELU(),"),
    "near miss: a narrow middle factorises": script(
        "from torch import nn\nmodel = nn.Sequential(nn.Linear(512, 8), nn.Linear(8, 512))\n"
    ),
    "near miss: grown in a loop, with activations": _grown_net("layers.append(nn.ReLU())"),
    "near miss: grown in a loop, called layer by layer": _grown_net("pass", _ONE_BY_ONE),
    "near miss: two heads side by side": _heads(768),
    "near miss: a chain that is linear on purpose": _cnn(name="deep_linear"),
    "near miss: grown in a loop, with something out of sight": _grown_net("layers += make(after)"),
    "activations": _deep_net(act="F.silu"),
    "near miss: normalised by layer": _deep_net(more="h = F.layer_norm(h, (64,))"),
    "near miss: gated by itself": _deep_net(more="h = h * h"),
    "near miss: max pooling bends": _cnn(pool=" nn.MaxPool2d(1),"),
    "near miss: a function of one's own": _deep_net(act="Bend.apply"),
    "near miss: part of a model that bends": _deep_net(user=_USER),
    "near miss: convolutions in groups": _cnn(pool=" nn.Conv2d(8, 8, 3, groups=8),"),
    "near miss: linear on purpose": _deep_net(name="DeepLinearNet"),
}
