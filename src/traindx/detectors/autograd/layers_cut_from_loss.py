from traindx.analysis.program.execution.values import Part, Result, Value
from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.feeds import cut_layers
from traindx.analysis.program.training.gradients import Cut
from traindx.analysis.program.training.operations import name_of_operation
from traindx.examples import template
from traindx.registry import Findings, Run, detector

CHANCES = ("log_prob", "log_softmax", "gather")
CAUSES = {Cut.DETACHED: "detached-loss", Cut.UNRECORDED: "no-grad-training"}


@detector(needs=("source",), suggests=("detached-loss", "no-grad-training"))
def check(run: Run) -> Findings:
    """A loss is computed from a layer, and every way back to the layer is cut.

    ## What it detects
    A layer or parameter made in sight that an optimizer steps, that a loss is computed from, and
    that no backward pass reaches: `.detach()`, `.data`, `.numpy()` or `no_grad` stands between.

    ## Why it matters
    The layer stays at its random initial weights, while the rest learns around it: the loss falls,
    and not as far as it should.

    ## What to do
    Take the cut away, or, where the layer is to stay fixed, leave it out of the optimizer.

    ## When it is wrong
    Random features that are meant to stay so. Layers that are loaded, frozen, kept in evaluation
    mode or reached on another way are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in cut_layers(story):
            if found.how is Cut.UNRECORDED and name_of_operation(found.cut) in CHANCES:
                continue  # a term of a policy's loss without a gradient: detached-loss-value
            site = found.cut.site or found.layer.site or found.backward.event.site
            if site.node not in seen:
                seen.add(site.node)
                name = found.layer.called("a layer")
                where = found.cut if found.cut.site is not None else found.layer
                yield finding(
                    f"`{name}` gets no gradient: {_means(found.cut)} cuts it off from the loss",
                    (where if where.site is not None else found.backward, "gradients stop here"),
                    (found.backward, "no gradient of this loss reaches it"),
                    cause=CAUSES[found.how],
                )


def _means(cut: Value) -> str:
    if isinstance(cut, Part):
        return f"`.{cut.key}`"
    maker = cut.maker if isinstance(cut, Result) else ""
    return f"`{maker}()`" if maker.startswith(".") else "what is computed without gradients"


_program = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        {forward}
        return self.head(h)

net = Net()
{before:}
optimizer = torch.optim.Adam({held:net.parameters()})
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
""")

_NO_GRAD = "with torch.no_grad():\n            h = self.body(x).relu()"

_TAPPED = """
kept = dict()
net.body.register_forward_hook(lambda m, args, out: kept.update(h=out{cut}))
"""
_TAKEN = "self.body(x); h = kept['h']"

FIRES = {
    "a hook that keeps what is detached": _program(_TAKEN, before=_TAPPED.format(cut=".detach()")),
    "detach": _program("h = self.body(x).relu().detach()"),
    "data of a weight": _program("h = x @ self.body.weight.data.t()"),
    "no_grad": _program(_NO_GRAD),
}
SILENT = {
    "near miss: a hook that keeps the output": _program(_TAKEN, before=_TAPPED.format(cut="")),
    "near miss: a hook beside the pass": _program(
        "h = self.body(x)", before=_TAPPED.format(cut=".detach()")
    ),
    "a right pass": _program("h = self.body(x).relu()"),
    "near miss: the optimizer holds the head": _program(_NO_GRAD, held="net.head.parameters()"),
    "near miss: loaded": _program(_NO_GRAD, before="net.body.load_state_dict(torch.load('b.pt'))"),
    "near miss: reached beside": _program("h = self.body(x); h = h / h.norm().detach()"),
    "near miss: a weight without gradients": _program(
        _NO_GRAD, before="net.body.weight = nn.Parameter(sines, requires_grad=False)"
    ),
    "near miss: frozen": _program(_NO_GRAD, before="net.body.requires_grad_(False)"),
}
