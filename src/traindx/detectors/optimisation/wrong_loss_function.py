from traindx.analysis.program.training.claims import cited, finding, program_of
from traindx.analysis.program.training.loss_fit import misfit_losses
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


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
    for misfit in misfit_losses(program_of(run)):
        event = misfit.loss.event
        yield finding(
            f"The loss does not fit the task: {misfit.why}",
            (event, "the loss is computed here"),
            *cited(misfit.value, misfit.shows),
        )


_program = template("""
from torchvision import datasets

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 32)
        self.head = nn.Linear(32, {units})

    def forward(self, x):
        x = torch.relu(self.body(x.flatten(1)))
        return {returned:self.head(x)}

model = Net()
criterion = nn.{loss}()
train_set = datasets.MNIST("data", train=True)
train_loader = torch.utils.data.DataLoader(train_set, shuffle=True)
for data, target in train_loader:
    {change:target = target.cuda()}
    output = model(data)
    loss = criterion(output, target)
    loss.backward()
""")

_SCORER = """
{imports}
from torch import nn

scorer = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
for rows, chosen in loader:
    loss = nn.functional.cross_entropy(scorer(rows), chosen)
    loss.backward()
"""

_tags = template("""
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
""")

FIRES = {
    "several tags at once": _tags("torch.sigmoid(net(words)) > 0.5"),
    "cross-entropy over one unit, for a table": script(_SCORER, imports="import pandas as pd"),
    "cross-entropy over one unit": _program(1, "CrossEntropyLoss"),
    "squared error on class labels": _program(10, "MSELoss"),
}

SILENT = {
    "near miss: one of several classes": _tags("net(words).softmax(1).argmax(1)"),
    "ten classes": _program(10, "CrossEntropyLoss"),
    "near miss: a score for each candidate": script(_SCORER, imports="from my_data import loader"),
    "near miss: candidates side by side": _program(
        1, "CrossEntropyLoss", "self.head(x).view(-1, 4)"
    ),
    "near miss: one-hot targets": _program(
        10, "MSELoss", change="target = nn.functional.one_hot(target, 10).float()"
    ),
}
