from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.initial_scale import misscaled_draws
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("bad-initialisation",))
def check(run: Run) -> Findings:
    """Several layers are initialised with random weights of a spread that does not fit their width.

    ## What it detects
    Two or more linear or convolution weights, or parameters made in sight, whose standard deviation
    times the root of the inputs is above 4, in a model without batch normalisation; or below 0.01
    where a plain optimizer trains them. `normal_(w, 0.02)` is a frequent form: 0.02 is the mean,
    and the standard deviation stays at 1.

    ## Why it matters
    Every layer multiplies the spread of its input by that factor: activations explode and saturate,
    or the output and the gradients no longer depend on the input.

    ## What to do
    Keep torch's default, use `kaiming_normal_` or `xavier_uniform_`, or give `std=` by name.

    ## When it is wrong
    Layers whose outputs are normalised forget the scale of their weights; such models are left
    alone, and so are single layers, embeddings, and weights that are loaded or written later.
    """
    for found in each_place(run, misscaled_draws, at=lambda found: found.draw.event.node):
        draw, says = found.draw, "too large" if found.is_large else "too small"
        spread = f"a {'gain' if draw.is_relative else 'standard deviation'} of {draw.std:.3g}"
        yield finding(
            f"`{source_text(draw.event) or 'the initial weight'}` draws weights with {spread},"
            f" {says} for {found.layers} layers",
            (draw.event, f"mean {draw.mean:g}, {spread}"),
        )


_program = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(64, 128), nn.Linear(128, 10)
        self.apply(self.reset)

    def reset(self, m):
        if isinstance(m, nn.Linear):
            {init}

    def forward(self, x):
        return self.two({norm:}(self.one(x).relu()))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
""")

_BY_HAND = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.randn(784, 100){scale})
        self.two = nn.Parameter(torch.randn(100, 10){scale})

    def forward(self, x):
        return (x @ self.one).relu() @ self.two
"""

FIRES = {
    "the mean for the standard deviation": _program("nn.init.normal_(m.weight, 0.02)"),
    "the mean by the width": _program("nn.init.normal_(m.weight, (2 / m.in_features) ** 0.5)"),
    "in place": _program("m.weight.data.normal_(0, 1)"),
    "uniform": _program("nn.init.uniform_(m.weight)"),
    "a gain": _program("nn.init.xavier_normal_(m.weight, gain=10)"),
    "parameters of its own": script(_BY_HAND, scale=""),
    "far too small": _program("nn.init.normal_(m.weight, std=1e-6)"),
}
SILENT = {
    "near miss: normalised before use": script(
        _BY_HAND.format(scale="")
        .replace("self.one)", "nn.functional.normalize(self.one))")
        .replace("@ self.two", "@ (self.two / 10)")
    ),
    "near miss: the width by name": _program(
        "nn.init.normal_(m.weight, std=(2 / m.in_features) ** 0.5)"
    ),
    "near miss: std by name": _program("nn.init.normal_(m.weight, std=0.02)"),
    "near miss: with the width": script(_BY_HAND, scale=" * 0.05"),
    "near miss: normalised": _program("nn.init.normal_(m.weight, 0.02)", "nn.BatchNorm1d(128)"),
    "near miss: drawn again": _program(
        "nn.init.normal_(m.weight, 0.02); nn.init.kaiming_normal_(m.weight)"
    ),
    "a usual rule": _program("nn.init.xavier_uniform_(m.weight)"),
}
