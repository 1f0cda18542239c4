from traindx.analysis.program.training.claims import cite, finding, program_of, source_text
from traindx.analysis.program.training.initialisation import constant_weights
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("bad-initialisation",))
def check(run: Run) -> Findings:
    """Weights that follow each other in a model are all set to one constant.

    ## What it detects
    Linear or convolution layers one behind another, or the two factors of a low-rank product,
    whose weights are filled with one value each and not written again: by a function given to
    `model.apply`, by `nn.init`, in place, or at their making; and a loop that fills every parameter
    of a model that is trained afterwards.

    ## Why it matters
    All units of a layer compute the same and get the same gradient for ever: the layer is one unit
    wide. With zeros in both, the gradient of each is zero and neither ever changes.

    ## What to do
    Keep torch's default, or use `nn.init.kaiming_normal_` or `xavier_uniform_`; zero the bias, the
    last layer, or one of two factors only.

    ## When it is wrong
    A zero last layer, residual branch or adapter is good practice; single layers are not looked at,
    and neither are biases and normalisation layers, nor parameters that are written again later.
    """
    for fill, other in constant_weights(program_of(run)):
        what, more = "every parameter of the model", []
        if other is not None and other.event.node is fill.event.node:
            what = "every linear or convolution weight of the model"
        elif other is not None:
            what = "weights that follow each other"
            more = [cite(other.event, f"and {other.value:g} for the weight that follows")]
        yield finding(
            f"`{source_text(fill.event)}` gives {what} the same value",
            (fill.event, f"{fill.value:g} for all units"),
            *more,
        )


_PROGRAM = """
def init_weights(m):
    if isinstance(m, {layer}):
        {fill}

model = nn.Sequential({model})
model.apply(init_weights)
"""
_DEEP = "nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)"
_program = template(_PROGRAM, fill="", layer="nn.Linear", model=_DEEP)
_average = template("""
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    p.data.zero_()
{after:}
loss.backward()
""")
_SUMMED = "for p, q in zip(model.parameters(), other.parameters()):\n    p.data.add_(q.data / n)"
_gate = template("""
def zero_init(m):
    if isinstance(m, nn.Conv2d):
        nn.init.zeros_(m.weight)

class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.Conv2d(8, 8, 3))
        self.gate = nn.Sequential(nn.SiLU(), nn.Conv2d(8, 3, 1))
        self.{part:}.apply(zero_init)
""")
_lora = template("""
class Adapter(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.down = nn.Parameter({down:})
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.down), self.up)
""")

_named = template("""
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for name, p in model.named_parameters():
    if {which}:
        nn.init.constant_(p, 0.1)
loss.backward()
""")

FIRES = {
    "all weights, by name": _named('"weight" in name'),
    "all weights, by shape": _named("p.dim() > 1"),
    "both factors of a low-rank product": _lora("torch.zeros(4, 8)"),
    "zeros": _program("nn.init.zeros_(m.weight)"),
    "a constant": _program("nn.init.constant_(m.weight, 0.5)"),
    "fill": _program("m.weight.data.fill_(0)"),
    "beside normalisation layers": _program(
        "nn.init.zeros_(m.weight)\n"
        "    elif isinstance(m, nn.BatchNorm1d):\n        nn.init.ones_(m.weight)"
    ),
    "every parameter": _average(),
    "a part with a hidden layer": _gate("body"),
}

SILENT = {
    "near miss: all biases, by name": _named('name.endswith("bias")'),
    "near miss: the last layer, by name": _named('name.startswith("2.")'),
    "near miss: one of two factors": _lora("torch.randn(4, 8)"),
    "near miss: the last layer of each residual branch": script("""
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return x + self.last(self.first(x).relu())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(), Block()

    def forward(self, x):
        return self.two(self.one(x))
"""),
    "kaiming": _program("nn.init.kaiming_normal_(m.weight)"),
    "near miss: a gate of one layer": _gate("gate"),
    "near miss: a linear model": _program("nn.init.zeros_(m.weight)", model="nn.Linear(8, 2)"),
    "near miss: an average is taken": _average(_SUMMED),
    "near miss: weights are loaded": _average("model.load_state_dict(torch.load(path))"),
    "near miss: an identity": _program(
        "nn.init.zeros_(m.weight)\n        m.weight.data.fill_diagonal_(1.0)"
    ),
    "near miss: the bias only": _program("nn.init.zeros_(m.bias)"),
    "near miss: a normalisation layer": _program("nn.init.ones_(m.weight)", "nn.BatchNorm1d"),
}
