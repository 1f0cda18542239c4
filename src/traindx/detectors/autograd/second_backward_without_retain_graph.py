from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.graphs import freed_graphs
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("graph-freed",))
def check(run: Run) -> Findings:
    """Backward runs a second time through values whose graph the first time has freed.

    ## What it detects
    Two calls of `backward` or `autograd.grad`, the first without `retain_graph`, on losses that are
    computed from one forward pass: two heads on one encoder, a generator's sample that the
    discriminator's loss did not detach, or a result that was made once, before the loop.

    ## Why it matters
    The first backward frees what that part of the graph had kept. The second one raises "Trying to
    backward through the graph a second time".

    ## What to do
    Add the losses and call `backward` once. Compute inside of the loop what follows the weights;
    detach what is not to be trained.

    ## When it is wrong
    What is detached, computed under `no_grad`, frozen or handed to a function out of sight is left
    alone, and so is a backward that need not run.
    """
    for found in each_place(run, freed_graphs, at=lambda found: found.second.event.node):
        value = found.value
        place = value if value.site is not None else found.second
        is_same = found.is_old and found.first.event.node is found.second.event.node
        yield finding(
            "Backward runs in every step through a graph that was built once, before the loop"
            if is_same
            else "A second backward runs through a graph that the first one has freed",
            (place, "computed once, with a graph"),
            (found.first, "the first backward frees that graph"),
            (found.second, "the second backward runs into what the first has freed"),
            at=place if is_same else found.second,
        )


_LOOP = """
encoder, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
features = {features}
for step in range(100):
    optimizer.zero_grad()
    {again}
    loss = (head(features) - y).pow(2).mean()
    loss.backward({option})
    optimizer.step()
"""
_penalty = template("""
class Trainer:
    def __init__(self, net):
        self.net = net
        self.penalty = sum((p ** 2).sum() for p in [net.weight])

    def fit(self, data):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        for x, y in data:
            loss = nn.functional.mse_loss(self.net(x), y) + 0.1 * {penalty}
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

Trainer(nn.Linear(3, 3)).fit(train_loader)
""")

_FROZEN = _LOOP.format(
    features="torch.exp(nn.Linear(2, 8).requires_grad_(False)(x))", again="pass", option=""
)

_loop = template(_LOOP, "features", again="pass", option="")

_heads = template("""
body, a, b = nn.Linear(8, 4), nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*body.parameters(), *a.parameters(), *b.parameters()])
for x, y, z in loader:
    optimizer.zero_grad()
    h = torch.relu(body(x))
    nn.functional.cross_entropy(a(h), y).backward({option:})
    nn.functional.mse_loss(b({given:h}), z).backward()
    optimizer.step()
""")

_measured = template("""
net = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters())
for step, (x, y) in enumerate(loader):
    loss = nn.functional.mse_loss(net(x), y)
    if step % 10 == 0:
        norms = [g.norm() for g in torch.autograd.grad(loss, {of:list(net.parameters())}{option:})]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

_CACHE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out, self.kept = nn.Embedding(16, 8), nn.Linear(8, 2), None
    def forward(self, x):
        if self.kept is None{refill}:
            self.kept = torch.tanh(self.table.weight @ self.table.weight.T)
        return self.out((self.kept @ x).mean(1))
net = Net()
opt = torch.optim.Adam(net.parameters())
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    {more}
"""
_cache = template(_CACHE, refill="", more="pass")

FIRES = {
    "kept from the first step on": _cache(),
    "two heads on one body": _heads(),
    "gradients measured now and then": _measured(),
    "gradients of one layer measured": _measured("net[0].weight"),
    "features of a layer": _loop("torch.relu(encoder(x))"),
    "a penalty, by a trainer": _penalty("self.penalty"),
}

SILENT = {
    "near miss: computed anew while it trains": _cache(" or self.training"),
    "near miss: thrown away after each step": _cache(more="net.kept = None"),
    "near miss: measured, and the graph is kept": _measured(option=", retain_graph=True"),
    "near miss: measured of the loss alone": _measured("loss"),
    "near miss: the second head is detached": _heads(given="h.detach()"),
    "near miss: two heads, kept": _heads(option="retain_graph=True"),
    "near miss: two passes": _heads(given="torch.relu(body(x))"),
    "near miss: detached": _loop("encoder(x).detach()"),
    "near miss: data of a network that is frozen": script(_FROZEN),
    "near miss: computed again": _loop("encoder(x)", "features = torch.relu(encoder(x))"),
    "near miss: the graph is kept": _loop("encoder(x)", option="retain_graph=True"),
    "near miss: a penalty of each step": _penalty("(self.net.weight ** 2).sum()"),
    "near miss: the number of a penalty": _penalty("self.penalty.item()"),
}
