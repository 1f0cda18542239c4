from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.saved_tensors import Overwritten, updated_weights
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("in-place-modification",))
def check(run: Run) -> Findings:
    """An optimizer steps, or weights are changed by hand, after the forward pass of a loss.

    ## What it detects
    A loss whose graph goes through a layer, an update of that layer's weights in the same turn of
    the loop, and only then `backward` of the loss: the critic steps while the actor's loss, which
    was computed with it, still waits; or weights are clamped between loss and backward.

    ## Why it matters
    A layer keeps its weights for the gradient of its input, and the update changes them in place:
    backward raises "modified by an inplace operation".

    ## What to do
    Compute the second loss after the first step, or call both `backward` before either step.

    ## When it is wrong
    A layer whose input has no gradient does not need its weights, and is left alone; so is an
    update under a condition of its own, and one through `.data`.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in updated_weights(story):
            if found.change.node not in seen:
                seen.add(found.change.node)
                yield _finding(found)


def _finding(found: Overwritten) -> Finding:
    place = found.saver if found.saver.site is not None else found.change
    return finding(
        "Weights are updated between a forward pass and its backward: backward will raise",
        (place, "the forward pass keeps these weights for backward"),
        (found.change, "and they are changed in place here, before backward runs"),
        at=found.change,
    )


_gan = template("""
G = nn.Linear(8, 8)
D = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
for real in loader:
    fake = G(torch.randn(4, 8))
    {early:pass}
    d_loss = D(fake.detach()).mean() - D(real).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    {late:pass}
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
""")
_clamped = template("""
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(net(x), y)
    with torch.no_grad():
        for p in net.parameters():
            {clamp}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
_LOSS = "g_loss = -D(fake).mean()"

FIRES = {
    "the discriminator steps first": _gan(early=_LOSS),
    "weights are clamped by hand": _clamped("p.clamp_(-1, 1)"),
}

SILENT = {
    "computed after the step": _gan(late=_LOSS),
    "near miss: through data": _clamped("p.data.clamp_(-1, 1)"),
    "near miss: computed again": _gan(early=_LOSS, late=_LOSS),
}
