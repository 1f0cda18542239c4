from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, cited, finding, node_of
from traindx.analysis.program.training.facts.tensor_devices import device_clashes
from traindx.analysis.program.training.program import each_place
from traindx.examples import form, script
from traindx.registry import Findings, Run, detector

CAUSE = "device-mismatch"


@detector(needs=("source",), suggests=(CAUSE,))
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
    if run.has_trained or run.failures:
        return
    seen: set[object] = set()
    for clash in each_place(
        run, device_clashes, lambda clash: (node_of(clash.left_behind), clash.event.node)
    ):
        places = {node_of(clash.left_behind) or clash.event.node, clash.event.node}
        if not places & seen and not is_test_file(clash.event.module):
            seen |= places
            here, left = cite(clash.event, clash.text), cited(clash.left_behind, "stays on the CPU")
            yield finding(clash.text, CAUSE, clash.event, here, *left, is_symptom=True)


_TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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
_train = form(_TRAIN, move="x, y = x.to(device), y.to(device)", there=", device=device")

_WEIGHTED = """
import torch
from torch import nn
criterion = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.8])){moved}
model = nn.Linear(8, 2).to("cuda")
x, y = torch.randn(16, 8).to("cuda"), torch.randint(0, 2, (16,)).to("cuda")
criterion(model(x), y).backward()
"""

FIRES = {
    "weights of a loss": script(_WEIGHTED, moved=""),
    "a table of a plain object": _train(there=""),
    "labels that stay": _train(move="x = x.to(device)"),
    "inputs that stay": _train(move="y = y.to(device)"),
}

_ON_ITS_OWN = """
import torch
from torch import nn

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
    "near miss: moved to where the input is": script(_ON_ITS_OWN, path="net.py"),
    "all moved": _train(),
    "near miss: a loss that is moved": script(_WEIGHTED, moved='.to("cuda")'),
    "near miss: moved one by one": _train(move="x, y = [part.to(device) for part in (x, y)]"),
    "near miss: trained on the CPU": script(
        _TRAIN.format(move="pass", there="").replace("cuda", "cpu")
    ),
}
