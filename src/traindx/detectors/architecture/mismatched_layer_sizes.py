from dataclasses import replace

from traindx.analysis.errors.passed_lines import run_at, unless_passed
from traindx.analysis.errors.shape_blame import resized
from traindx.analysis.program import project_of
from traindx.analysis.program.shapes.accounts import origin_of
from traindx.analysis.program.shapes.forward_traces import ForwardTrace
from traindx.analysis.program.shapes.machine import Conflict
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.shapes.uses import contradictions
from traindx.analysis.program.training.claims import cite, finding, line_of, location_of, program_of
from traindx.analysis.program.training.facts.tensor_shapes import Clash
from traindx.examples import Ending, Process, make_run, recorded, script, template
from traindx.model.findings import Location, cite_source
from traindx.registry import Evidence, Finding, Findings, Run, Strength, detector

CAUSES = {"channels": "channel-mismatch"}


@detector(needs=("source",), suggests=("shape-mismatch", "channel-mismatch"))
def check(run: Run) -> Findings:
    """Layers follow each other whose sizes do not fit.

    ## What it detects
    The forward pass of every module class is followed on shapes, from the inputs that the source
    shows or from what the first layer asks for: a linear layer behind a flatten of another size, a
    convolution or norm for other channels, tensors that cannot be added, joined or viewed. So is
    the whole program, from its arrays, datasets and collate functions to the loss.

    ## Why it matters
    The first batch will fail, after the data were loaded and the GPUs were waited for.

    ## What to do
    Build the layer for the size that reaches it; the patch does so where a number stands there.

    ## When it is wrong
    Sizes that depend on what cannot be seen (configuration, data) are left alone, and so are the
    numbers of dimensions where the source does not show what a model is fed with. A class that is
    never used may contradict itself unharmed. A line that is known to have run is left alone;
    steps of training that may be those of another program speak against it.
    """
    lines: set[tuple[str, int]] = set()
    for trace, conflict, origin in contradictions(project_of(run)):
        lines |= {(conflict.file, n) for n in (conflict.line, conflict.built_line or conflict.line)}
        found = _finding(trace, conflict, origin)
        yield from unless_passed(run, found, run_at(run, (conflict.file, conflict.line)))
    for story in program_of(run).stories:
        for clash in story.shapes.clashes():
            met = [location_of(w) for w in (clash.event, clash.layer) if w is not None]
            places = {(place.file, place.line) for place in met}
            if not places & lines and not is_test_file(clash.event.module):
                lines |= places
                yield from unless_passed(run, _followed(clash), line_of(clash.event))


def _followed(clash: Clash) -> Finding:
    """Say where sizes clash in the program as it was followed, data and batches included."""
    mismatch, layer = clash.mismatch, clash.layer
    built = () if layer is None else (cite(layer, f"built here for {mismatch.expected}"),)
    return finding(
        clash.text[0].upper() + clash.text[1:],
        (clash.event, "the sizes meet here"),
        *built,
        cause=CAUSES.get(mismatch.kind, "shape-mismatch"),
    )


def _finding(trace: ForwardTrace, conflict: Conflict, origin: str) -> Finding:
    layer = conflict.layer
    where = f"At {conflict.attribute}, " if conflict.attribute else ""
    claim = f"{where}{conflict.text}"
    evidence = [cite_source(conflict.file, conflict.line, "the sizes meet here")]
    account = origin_of(trace, conflict)
    if account:
        evidence.append(cite_source(conflict.file, conflict.line, account))
    if origin:
        evidence.append(Evidence(f"input shapes: {origin}", conflict.file))
    location, patch = Location(conflict.file, conflict.line, conflict.line), None
    if layer is not None:
        says = f"built here for {conflict.expected}"
        evidence.insert(0, cite_source(layer.module.path, layer.node.lineno, says))
        last = layer.node.end_lineno or layer.node.lineno
        location = Location(layer.module.path, layer.node.lineno, last)
        patch = resized(layer, conflict.got)
    return Finding(
        claim=claim[0].upper() + claim[1:],
        strength=Strength.STRONG,
        evidence=tuple(evidence),
        shows=CAUSES.get(conflict.kind, "shape-mismatch"),
        is_symptom=True,
        location=location,
        patch=patch,
    )


_net = template("""
class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3{padding:})
        self.bn = nn.BatchNorm2d({norm:width})
        self.fc = nn.Linear({features:64 * 30 * 30}, 10)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return self.fc(torch.flatten(x, 1))

model = Net()
out = model(torch.randn(4, 3, 32, 32))
""")
_CHAIN = """
model = nn.Sequential(nn.Linear(784, {a}), nn.ReLU(), nn.Linear(64, 10))
"""

FIRES = {
    "a flatten of another size": _net(features="64"),
    "a norm for other channels": _net(norm="32"),
    "a chain of linear layers": script(_CHAIN, a=128),
    "beside a log of steps, which may be another program's": replace(
        make_run({"loss/train": [2.3, 1.9, 1.5]}), sources=_net(features="64").sources
    ),
}

SILENT = {
    "near miss: one stem for each level": script("""
class Head(nn.Module):
    def __init__(self, widths=(8, 16)):
        super().__init__()
        self.stems = nn.ModuleList([nn.Conv2d(w, 4, 1) for w in widths])
        self.ends = nn.ModuleList([nn.Conv2d(4, 2, 1) for w in widths])

    def forward(self, levels):
        return [end(self.stems[k](x)) for k, (end, x) in enumerate(zip(self.ends, levels))]

levels = (torch.rand(2, 8, 9, 9), torch.rand(2, 16, 9, 9))
print(Head()(levels))
"""),
    "near miss: a total of every hour": script("""
import pandas as pd

table = pd.read_csv("loads.csv", index_col=0, parse_dates=True)
hours = table.resample("1h", label="left").sum()["2011":"2014"]
print(torch.tensor(hours.values)[:, 0])
"""),
    "near miss: sizes that one value gives, or that a batch may have": script("""
from torchvision import datasets, transforms

def pooled(output, mask):
    tokens = output[0]
    mask = mask.unsqueeze(-1).expand(tokens.size()).float()
    return torch.sum(tokens * mask, 1) / mask.sum(1)

def windows(x, width, height, count):
    rows = int(x.shape[0] / (height * width / count))
    return x.view(rows, height, width, count, 7, -1).permute(0, 1, 3, 2, 4, 5)

data = datasets.MNIST("data", transform=transforms.ToTensor())
for images, labels in DataLoader(data, batch_size=100):
    flat = images.reshape(100, -1)
    frames = torch.nn.Conv2d(4, 8, 3)(images.view(-1, *data.sizes))
    found = pooled(encode(images), labels)
    scores = torch.ones(len(labels)).view(-1, 10)
    parts = windows(torch.rand(8, 49, 128).view(-1, 7, 7, 128), data.width, data.height, 7)
"""),
    "near miss: blocks that a loop adds by name": script("""
from collections import OrderedDict

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = OrderedDict(), 3
        for index in range(options.depth):
            layers.update({"abc"[index]: nn.Conv2d(width, 24, 3)})
            width = 24
        layers.update({"top": nn.Conv2d(options.width, 8, 3)})
        self.features, self.out = nn.Sequential(layers), nn.Conv2d(320, 8, 1)

    def forward(self, x):
        return self.features(x)

out = Net()(torch.rand(1, 3, 64, 64))
"""),
    "near miss: sizes that are turned round": script("""
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [8, 16, 32]
        self.down = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 32))
        sizes.reverse()
        self.up = nn.Linear(sizes[0], sizes[-1])
        self.scale = nn.Parameter(torch.FloatTensor(sizes[-1], len(sizes)))
        self.scale.data.uniform_(-1.0 / self.scale.size(1), 1.0)

    def forward(self, x):
        return self.up(self.down(x)) @ self.scale

coder = Coder()
out = coder(torch.rand(4, 8))
"""),
    "near miss: one class for each image": script("""
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.classes, self.out = nn.Embedding(10, 10), nn.Linear(784 + 10, 1)

    def forward(self, image, labels):
        flat = image.view(image.size(0), -1)
        return self.out(torch.cat((flat, self.classes(labels)), -1))

judge = Judge()
score = judge(torch.rand(64, 1, 28, 28), draw_labels(64))
"""),
    "sizes that fit": _net(),
    "near miss: padding keeps the size": _net(features="64 * 32 * 32", padding=", padding=1"),
    "near miss: a size from outside": _net(features="config.features"),
    "near miss: the line has run": replace(
        recorded(Process(), ending=Ending(exit_code=0)), sources=_net(features="64").sources
    ),
    "near miss: an index for each row, or for each place": script("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind, self.item = nn.Embedding(8, 32), nn.Embedding(80, 32)

    def forward(self, landing, history):
        return torch.cat([self.kind(landing), self.item(history).mean(1)], -1)
"""),
    "a chain that fits": script(_CHAIN, a=64),
}
