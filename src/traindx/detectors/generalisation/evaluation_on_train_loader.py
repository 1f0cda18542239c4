from traindx.analysis.program.training.claims import cite, each_place, finding, replace_argument
from traindx.analysis.program.training.idle_loaders import misplaced_scores, trainers_on_one_set
from traindx.analysis.program.training.idle_parts import idle_parts
from traindx.examples import template
from traindx.registry import Findings, Run, detector

CAUSE = "evaluating-on-training-data"


@detector(needs=("source",), suggests=("evaluating-on-training-data",))
def check(run: Run) -> Findings:
    """An evaluation runs on the training loader, and the held-out loader is never used.

    ## What it detects
    A loader named for validation or testing that nothing reads, beside a loop over the loader that
    is trained on that runs the model without learning and scores its outputs, or the `validate` of
    a trainer with that loader; a `train_test_split` whose test part is never used beside a score on
    the other; and a `Trainer` whose `eval_dataset` is its `train_dataset`.

    ## Why it matters
    The metric says how well the training data are remembered. It looks excellent and says nothing
    about new data.

    ## What to do
    Hand over the held-out loader, which is made and waits.

    ## When it is wrong
    A metric on training data beside one on held-out data is right; there the held-out loader is
    read somewhere, and nothing is said.
    """
    for event in each_place(run, trainers_on_one_set, lambda event: event.node):
        claim = "The trainer evaluates on its training data: `eval_dataset` is its `train_dataset`"
        same = cite(event, "train_dataset and eval_dataset are the same")
        yield finding(claim, same, at=event)
    for part in each_place(run, idle_parts, lambda part: part.score.node):
        yield finding(
            "The model is evaluated on its training data, and the test part of the split is "
            "never used",
            (part.score, "a score on the training part"),
            (part.division.place, "the second part of this split is never used"),
        )
    for found in each_place(run, misplaced_scores, lambda score: score.held):
        call = found.call
        yield finding(
            f"The model is evaluated on `{found.name}`, and `{found.held_name}` is never used",
            (call or found.score, "evaluated on the training data"),
            (found.held, "the held-out data, which nothing reads"),
            patch=None if call is None else replace_argument(call, found.trained, found.held_name),
        )


_program = template("""
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=32)

def accuracy(loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float().mean() for x, y in loader]
    return sum(hits) / len(hits)

def centre(loader):
    return torch.cat([x for x, _ in loader]).mean()

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    {call}
""")
_trainer = template("""
from transformers import Trainer
trainer = Trainer(model, args, train_dataset=ds['train'], eval_dataset={held})
trainer.train()
""")

_split = template("""
from sklearn.model_selection import train_test_split

X_train, X_test, y_train, y_test = train_test_split(X, y)
X_train, X_test = torch.tensor(X_train), torch.tensor(X_test)
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(50):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(X_train), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print({label:}(model({x}).argmax(1) == {y}).float().mean())
{more:}
""")

FIRES = {
    "the wrong part": _split("X_train", "y_train", more="print(X_test.shape)"),
    "the wrong loader": _program("print(accuracy(train_loader))"),
    "the wrong dataset": _trainer("ds['train']"),
}

SILENT = {
    "the right part": _split("X_test", "y_test"),
    "near miss: a score that is said to be of training": _split(
        "X_train", "y_train", label="'train accuracy', "
    ),
    "near miss: the other part goes to a file": _split(
        "X_train", "y_train", more="torch.save(X_test, 'test.pt')"
    ),
    "near miss: the other part is tested elsewhere": _split(
        "X_train", "y_train", more="report(model, X_test)"
    ),
    "the right loader": _program("print(accuracy(test_loader))"),
    "near miss: both": _program("print(accuracy(train_loader), accuracy(test_loader))"),
    "near miss: no score": _program("print(centre(train_loader))"),
    "the right dataset": _trainer("ds['test']"),
}
