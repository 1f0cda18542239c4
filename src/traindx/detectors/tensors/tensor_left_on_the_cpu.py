from traindx.analysis.errors.passed_lines import unless_passed
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, cited, finding, line_of, node_of
from traindx.analysis.program.training.facts.tensor_devices import device_clashes
from traindx.analysis.program.training.program import each_place
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("device-mismatch",))
def check(run: Run) -> Findings:
    """An operation needs two tensors on one device and one of them was never moved.

    ## What it detects
    The device of tensors is followed from where they are made or loaded: a model that is moved and
    a batch that is not, targets that stay behind, a table of a plain object that is indexed with
    what is on the device, weights of a loss that are made on the CPU.

    ## Why it matters
    On a machine with a GPU the first batch fails with "Expected all tensors to be on the same
    device"; on one without, everything works.

    ## What to do
    Move the tensor too, make it with `device=x.device`, or register it as a buffer.

    ## When it is wrong
    A single number mixes with tensors anywhere, and an index of the CPU may point into a tensor of
    a GPU; both are left alone, as are programs in which a library moves batches or models.
    """
    seen: set[object] = set()
    for clash in each_place(
        run, device_clashes, lambda clash: (node_of(clash.left_behind), clash.event.node)
    ):
        places = {node_of(clash.left_behind) or clash.event.node, clash.event.node}
        if not places & seen and not is_test_file(clash.event.module):
            seen |= places
            here, left = cite(clash.event, clash.text), cited(clash.left_behind, "stays on the CPU")
            found = finding(clash.text, here, *left, at=clash.event)
            yield from unless_passed(run, found, line_of(clash.event))


_TRAIN = """
class Schedule:
    def __init__(self, device=None):
        self.rates = torch.linspace(0, 1, 100{there})

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,)))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
schedule = Schedule(device)
for x, y in DataLoader(data, batch_size=16):
    {move}
    t = torch.randint(0, 100, (len(x),), device=x.device)
    rate = schedule.rates[t].unsqueeze(1)
    loss = nn.functional.cross_entropy(model(x * rate), y)
    loss.backward()
"""
_train = template(_TRAIN, move="x, y = x.to(device), y.to(device)", there=", device=device")

_WEIGHTED = """
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.8])){moved}
model = nn.Linear(8, 2).to("cuda")
x, y = torch.randn(16, 8).to("cuda"), torch.randint(0, 2, (16,)).to("cuda")
criterion(model(x), y).backward()
"""

_teacher = template("""
import copy
import accelerate

loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 2, (64,))), batch_size=16)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{before}
for x, y in loader:
    {move:pass}
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), teacher(x).detach()).backward()
    optimizer.step()
""")
_COPY = "teacher = copy.deepcopy(net)"
_PREPARED = "net, optimizer, loader = accelerate.Accelerator().prepare(net, optimizer, loader)"

FIRES = {
    "a copy that an engine does not know": _teacher(f"{_COPY}\n{_PREPARED}"),
    "a copy that is not moved": _teacher(f"{_COPY}\nnet.cuda()", move="x = x.cuda()"),
    "weights of a loss": script(_WEIGHTED, moved=""),
    "a table of a plain object": _train(there=""),
    "labels that stay": _train(move="x = x.to(device)"),
    "inputs that stay": _train(move="y = y.to(device)"),
}

_ON_ITS_OWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        classes = torch.zeros(len(x), 4).to(x.device)
        return self.out(torch.cat([x, classes], 1))

if __name__ == "__main__":
    out = Net()(torch.randn(5, 8))
"""

SILENT = {
    "near miss: a copy of what an engine has moved": _teacher(f"{_PREPARED}\n{_COPY}"),
    "near miss: a copy that is moved": _teacher(
        f"{_COPY}\nfor m in (net, teacher):\n    m.cuda()", move="x = x.cuda()"
    ),
    "near miss: a copy of what was moved": _teacher(f"net.cuda()\n{_COPY}", move="x = x.cuda()"),
    "near miss: moved to where the input is": script(_ON_ITS_OWN, path="net.py"),
    "all moved": _train(),
    "near miss: a loss that is moved": script(_WEIGHTED, moved='.to("cuda")'),
    "near miss: moved one by one": _train(move="x, y = [part.to(device) for part in (x, y)]"),
    "near miss: trained on the CPU": script(
        _TRAIN.format(move="pass", there="").replace("cuda", "cpu")
    ),
}
