from traindx.analysis.program.training.claims import each_place, finding, node_of, replace
from traindx.analysis.program.training.class_outputs import miscounts
from traindx.examples import template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("output-size-mismatch",))
def check(run: Run) -> Findings:
    """A classifier has other outputs than its dataset has classes.

    ## What it detects
    A loss that takes one logit per class, labels as a loader gives them of a dataset whose classes
    are known (MNIST and CIFAR10 have 10, CIFAR100 has 100), and logits out of a linear layer with
    another number of outputs.

    ## Why it matters
    With too few outputs the first label beyond them fails, on a GPU with an assert in a place far
    off. With too many, training works towards classes that never occur.

    ## What to do
    Build the last layer for the number of classes.

    ## When it is wrong
    Labels that are regrouped, filtered or extended are not followed; code that touches them is left
    alone, and so is a task that makes its own, such as telling by how much an image was turned.
    """
    for found in each_place(run, miscounts, lambda miscount: node_of(miscount.layer)):
        name, outputs, count = found.name, found.outputs, found.classes
        is_few = outputs < count
        effect = "labels beyond them will fail" if is_few else "the rest never occur"
        yield finding(
            f"The model ends in {outputs} outputs and {name} has {count} classes: {effect}",
            (found.layer, f"the last layer has {outputs} outputs"),
            (found.dataset, f"{name} has {count} classes"),
            (found.loss.event, "the loss compares them here"),
            is_symptom=is_few,
            strength=Strength.STRONG if is_few else Strength.MODERATE,
            hint=None if is_few else Strength.MODERATE,
            patch=replace(found.written, str(count)) if found.written is not None else None,
        )


_TRAIN = """
from torchvision import datasets, transforms

class Net(nn.Module):
    def __init__(self, classes={default}):
        super().__init__()
        self.fc1 = nn.Linear(3072, 256)
        self.fc2 = nn.Linear(256, {classes})

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))

data = datasets.CIFAR100("data", transform=transforms.ToTensor(){more})
loader = torch.utils.data.DataLoader(data, batch_size=32)
model = Net()
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    {before}
    loss = criterion(model(x), {target})
    loss.backward()
"""
_train = template(_TRAIN, "classes", default=100, more="", target="y", before="pass")

_TURNED = "x, turns = turn_by_quarters(x)"

FIRES = {
    "labels that are moved": _train("10", before="x, y = x.cuda(), y.cuda()"),
    "ten outputs for a hundred classes": _train("10"),
    "by default": _train("classes", 10),
}

SILENT = {
    "as many as classes": _train("100"),
    "near miss: a parameter of the right value": _train("classes", 100),
    "near miss: labels of one's own": _train("4", target="turns", before=_TURNED),
    "near miss: labels made of the labels": _train("2", target="(y > 50).long()"),
    "near miss: labels made of the labels, by name": _train("20", before="y = y // 5"),
    "near miss: labels are regrouped": _train("20", more=", target_transform=coarse"),
}
