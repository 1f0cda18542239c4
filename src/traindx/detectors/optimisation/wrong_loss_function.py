"""The loss does not fit what the model puts out or what the labels are."""

from traindx.analysis.program.execution.values import Part, Result, Value, constant
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.loaders import dataset_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Computed, Program, program_of
from traindx.analysis.program.training.shapes import made_by_layer, shape_of
from traindx.analysis.program.training.tasks import Task, is_multi_hot, task_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CLASSIFICATION = frozenset(
    {"MNIST", "FashionMNIST", "KMNIST", "QMNIST", "CIFAR10", "CIFAR100", "ImageFolder", "SVHN",
     "STL10", "ImageNet", "Food101", "DatasetFolder"}
)  # fmt: skip
TABLES = ("pandas", "sklearn.datasets", "torch.utils.data.TensorDataset")  # one row per sample
BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "nll_loss")
DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Findings:
    """Cross-entropy over one output or over independent tags; a regression loss on class labels.

    ## What it detects
    Cross-entropy whose input is the output of a linear layer with one unit, in its own shape;
    cross-entropy on the output of a layer to which the same program applies a sigmoid when it
    predicts; a squared or absolute error between several outputs and the labels of a
    classification dataset; a loss of classes on amounts, and of amounts on classes, where the data
    set of scikit-learn or a score such as `r2_score` on the same target says what they are; and
    cross-entropy on rows in which any number of classes is marked.

    ## Why it matters
    Over one class the softmax is always 1 and the loss always 0: nothing is learnt. Softmax makes
    labels that may hold together exclude each other, and its logits mean nothing to a sigmoid.
    Squared error treats class numbers as amounts, so class 9 is "further" from 1 than class 2 is.

    ## What to do
    One output, or several labels at once: BCEWithLogitsLoss. Several classes: one unit per class
    and CrossEntropyLoss.

    ## When it is wrong
    Scores of several candidates, one unit each, are softmaxed over the candidates; an output whose
    shape changes on the way is left alone, and so is a model that may be applied to each of several
    rows of a sample, where nothing in the code tells that there is one. So are labels that pass
    through one-hot encoding.
    """
    program = program_of(run)
    seen: set[object] = set()
    for loss in program.results("cross_entropy", *BINARY, *DISTANCES):
        if loss.event.node in seen:
            continue
        fault = _fault(program, loss)
        if fault is not None:
            why, *evidence = fault
            seen.add(loss.event.node)
            yield finding(
                f"The loss does not fit the task: {why}",
                "wrong-loss-for-task",
                loss.event,
                cite(loss.event, "the loss is computed here"),
                *(cite(value, says) for value, says in evidence if value.site is not None),
                is_symptom=True,
            )


def _misfit(loss: Computed) -> tuple[str, tuple[Value, str]] | None:
    """Compare what the target is with what the loss takes it for."""
    given, target = loss.operation.argument("input"), loss.operation.argument("target")
    if given is None or target is None or not runs_behind(given):
        return None
    if loss.operation.name == "cross_entropy" and is_multi_hot(loss.story, target):
        return f"{loss.label} over labels that may hold together", (target, "several ones in a row")
    task = task_of(loss.story, target)
    if task is None or task[0] is (Task.AMOUNT if loss.operation.name in DISTANCES else Task.CLASS):
        return None
    kind, shown = task
    return f"{loss.label} of a target that is {kind.value}", (shown, f"shows {kind.value}")


def _fault(program: Program, loss: Computed) -> tuple[str, tuple[Value, str]] | None:
    misfit = _misfit(loss)
    if misfit is not None:
        return misfit
    given, target = loss.operation.argument("input"), loss.operation.argument("target")
    if loss.operation.name not in ("cross_entropy", *DISTANCES):
        return None
    layer = made_by_layer(given)
    operation = operation_of(given)
    if given is None or layer is None or operation is None:
        return None
    made = operation_of(Result("()", layer))
    units = None if made is None else constant(made.settings.get("out_features"))
    if loss.operation.name != "cross_entropy":
        if isinstance(units, int) and units > 1 and _is_class(target):
            why = f"{loss.label} between {units} outputs and class labels"
            return why, (layer, f"{units} output units")
        return None
    if units == 1 and _is_one_row(program, given, target):
        return f"{loss.label} over a single output is always 0", (layer, "one output unit")
    sigmoid = _sigmoid_of(program, layer)
    if sigmoid is not None:
        why = f"trained with {loss.label} (softmax), and predicted with a sigmoid for each label"
        return why, (sigmoid, "a sigmoid of the same output")
    return None


def _is_one_row(program: Program, given: Value, target: Value | None) -> bool:
    """Tell whether a model gives one score per sample, and not one for each of its candidates.

    Linear layers take rows of any number: (B, K, features) becomes (B, K, 1), K candidates.
    """
    shape = shape_of(given)
    cast = operation_of(target)
    if shape is not None:
        return len(shape) == 2
    imported = [n for m in program.project.modules for n in m.aliases.values()]
    is_table = any(n == t or n.startswith(f"{t}.") for n in imported for t in TABLES)
    return is_table or (cast is not None and cast.name == "float")


def _sigmoid_of(program: Program, layer: Result) -> Value | None:
    """A sigmoid that a layer's output is given to, by itself: a threshold for each label."""
    for found in program.results("sigmoid"):
        given, made = found.operation.operands[:1], found.event.result
        if given and made_by_layer(given[0]) is layer and made is not None:
            return None if feeds_backward(found.story, made) else made
    return None


def _is_class(target: Value | None) -> bool:
    """Tell whether a target is the label that a classification dataset gives, as it is."""
    plain = next(iter(same_numbers(target)), None) if target is not None else None
    if not isinstance(plain, Part) or plain.key != 1 or not isinstance(plain.of, Result):
        return False
    batch = plain.of
    loader = batch.args[0] if batch.maker == "builtins.next" and batch.args else None
    data = None if loader is None else dataset_of(loader)
    if not isinstance(data, Result) or "target_transform" in data.kwargs:
        return False
    return data.maker.rsplit(".", 1)[-1] in CLASSIFICATION


_PROGRAM = """
import torch
from torch import nn
from torchvision import datasets

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 32)
        self.head = nn.Linear(32, {units})

    def forward(self, x):
        x = torch.relu(self.body(x.flatten(1)))
        return {returned}

model = Net()
criterion = nn.{loss}()
train_set = datasets.MNIST("data", train=True)
train_loader = torch.utils.data.DataLoader(train_set, shuffle=True)
for data, target in train_loader:
    {change}
    output = model(data)
    loss = criterion(output, target)
    loss.backward()
"""


def _program(
    units: int, loss: str, returned: str = "self.head(x)", change: str = "target = target.cuda()"
) -> Run:
    text = _PROGRAM.format(units=units, loss=loss, returned=returned, change=change)
    return make_run(sources={"train.py": text})


_SCORER = """
import torch
from torch import nn
{imports}

scorer = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
for rows, chosen in loader:
    loss = nn.functional.cross_entropy(scorer(rows), chosen)
    loss.backward()
"""


def _scorer(imports: str = "from my_data import loader") -> Run:
    return make_run(sources={"train.py": _SCORER.format(imports=imports)})


_TAGS = """
import torch
from torch import nn

net = nn.Sequential(nn.Embedding(90, 16), nn.Flatten(1), nn.Linear(160, 6))
optimizer = torch.optim.Adam(net.parameters())

def learn(words, tags):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(net(words), tags).backward()
    optimizer.step()

@torch.no_grad()
def tags_of(words):
    return {predicted}

for words, tags in train_loader:
    learn(words, tags)
print(tags_of(held_out))
"""


def _tags(predicted: str) -> Run:
    return make_run(sources={"train.py": _TAGS.format(predicted=predicted)})


FIRES = {
    "several tags at once": _tags("torch.sigmoid(net(words)) > 0.5"),
    "cross-entropy over one unit, for a table": _scorer("import pandas as pd"),
    "cross-entropy over one unit": _program(1, "CrossEntropyLoss"),
    "squared error on class labels": _program(10, "MSELoss"),
}

SILENT = {
    "near miss: one of several classes": _tags("net(words).softmax(1).argmax(1)"),
    "ten classes": _program(10, "CrossEntropyLoss"),
    "near miss: a score for each candidate": _scorer(),
    "near miss: candidates side by side": _program(
        1, "CrossEntropyLoss", "self.head(x).view(-1, 4)"
    ),
    "near miss: one-hot targets": _program(
        10, "MSELoss", change="target = nn.functional.one_hot(target, 10).float()"
    ),
}
