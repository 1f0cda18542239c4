"""The evaluation is handed the training data, and the held-out data lie idle."""

from collections.abc import Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.frameworks import is_trainer
from traindx.analysis.program.execution.values import Answer, Known, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, replace_argument
from traindx.analysis.program.training.idle_parts import idle_parts
from traindx.analysis.program.training.loaders import (
    is_held_out,
    is_idle,
    is_loader,
    named_loaders,
    same_data,
)
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.phases import LEARNS, Loop, phase_word
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

EVALUATES = (".validate", ".test", ".evaluate")  # of a framework's trainer
COMPARES = LOSSES | {"eq", "ne", "item", "sub"}


@detector(needs=("source",), suggests=("evaluating-on-training-data",))
def check(run: Run) -> Findings:
    """An evaluation is given the training loader, and the held-out loader is never used.

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
    seen: set[object] = set()
    for story in program_of(run).stories:
        yield from _same_datasets(story, seen)
        yield from _idle_parts(story, seen)
        idle = _idle(story)
        for at, trained in _scores(story) if idle is not None else ():
            if idle is not None and idle[1] not in seen:
                seen.add(idle[1])
                yield _finding(story, at, trained, idle)


def _idle(story: Story) -> tuple[str, Value] | None:
    """The loader of held-out data that nothing reads."""
    for loaders in named_loaders(story):
        for name, loader in loaders.items():
            if is_held_out(name) and all(is_idle(s, loader) for s in story.program.stories):
                return name, loader
    return None


def _scores(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Where a model is scored on what it was trained on."""
    loops: dict[object, Loop] = {}
    for forward in story.does(Do.FORWARD):
        for run in forward.event.loops[-1:]:
            loops.setdefault((run.site.node, run.occasion), Loop(story, run, is_apart=True))
    learning = [x.over for x in loops.values() if x.does(*LEARNS)]
    trained = [v for v in learning if v is not None and is_loader(v)]
    for loop in loops.values():
        if loop.does(*LEARNS) or not any(loop.over is v for v in trained):
            continue
        passes = [d for d in loop.does(Do.FORWARD) if not d.event.within]
        scored = next((d for d in passes if _is_scored(story, d)), None)
        if scored is not None and loop.over is not None:
            yield scored.event, loop.over
    for event in story.events:
        if event.name in EVALUATES and is_trainer(event.receiver):
            given = [v for v in (*event.args, *event.kwargs.values()) if v in trained]
            if given:
                yield event, given[0]


def _is_scored(story: Story, forward: Deed) -> bool:
    """Tell whether a pass evaluates: it does not learn, and its output is compared."""
    event = forward.event
    if Answer.NO not in (event.gradients, event.is_training) or event.result is None:
        return False
    pending, seen = [event.result], 0
    while pending and seen < 60:
        seen += 1
        for use in story.made_from(pending.pop()):
            operation = operation_of(use)
            if operation is not None and operation.name in COMPARES:
                return True
            pending.append(use)
    return False


def _finding(story: Story, at: ProgramEvent, trained: Value, idle: tuple[str, Value]) -> Finding:
    held_name, held = idle
    name = next((n for n in sorted(trained.names) if phase_word(n) == "train"), "the training data")
    # the call that hands the loader over, from the outside in; or the trainer's own
    nodes = [site.node for site in at.callers]
    calls = [e for e in story.events if e is at or (e.is_own and e.node in nodes)]
    call = next((e for e in calls if trained in (*e.args, *e.kwargs.values())), None)
    return finding(
        f"The model is evaluated on `{name}`, and `{held_name}` is never used",
        "evaluating-on-training-data",
        call or at,
        cite(call or at, "evaluated on the training data"),
        cite(held, "the held-out data, which nothing reads"),
        is_symptom=True,
        patch=None if call is None else replace_argument(call, trained, held_name),
    )


def _idle_parts(story: Story, seen: set[object]) -> Findings:
    """Splits whose second part is never used, where the first one is scored."""
    for part in idle_parts(story):
        if part.score.node in seen:
            continue
        seen.add(part.score.node)
        yield finding(
            "The model is evaluated on its training data, and the test part of the split is "
            "never used",
            "evaluating-on-training-data",
            part.score,
            cite(part.score, "a score on the training part"),
            cite(part.division.place, "the second part of this split lies idle"),
            is_symptom=True,
        )


def _same_datasets(story: Story, seen: set[object]) -> Findings:
    """Trainers of a framework that evaluate on what they train on."""
    for event in story.events:
        train, held = event.kwargs.get("train_dataset"), event.kwargs.get("eval_dataset")
        if isinstance(held, Known) or not same_data(train, held) or event.node in seen:
            continue
        seen.add(event.node)
        yield finding(
            "The trainer evaluates on its training data: `eval_dataset` is its `train_dataset`",
            "evaluating-on-training-data",
            event,
            cite(event, "train_dataset and eval_dataset are the same"),
            is_symptom=True,
        )


_PROGRAM = """
import torch
from torch.utils.data import DataLoader

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
"""


def _program(call: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(call=call)})


def _trainer(held: str) -> Run:
    text = f"t = Trainer(model, args, train_dataset=ds['train'], eval_dataset={held})\nt.train()\n"
    return make_run(sources={"train.py": "import torch\nfrom transformers import Trainer\n" + text})


_SPLIT = """
import torch
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
    print((model({x}).argmax(1) == {y}).float().mean())
{more}
"""


def _split(x: str, y: str, more: str = "") -> Run:
    return make_run(sources={"train.py": _SPLIT.format(x=x, y=y, more=more)})


FIRES = {
    "the wrong part": _split("X_train", "y_train", "print(X_test.shape)"),
    "the wrong loader": _program("print(accuracy(train_loader))"),
    "the wrong dataset": _trainer("ds['train']"),
}

SILENT = {
    "the right part": _split("X_test", "y_test"),
    "near miss: a score that is said to be of training": make_run(
        sources={
            "train.py": _SPLIT.format(x="X_train", y="y_train", more="").replace(
                "print(", 'print("train accuracy", '
            )
        }
    ),
    "near miss: the other part goes to a file": _split(
        "X_train", "y_train", "torch.save(X_test, 'test.pt')"
    ),
    "near miss: the other part is tested elsewhere": _split(
        "X_train", "y_train", "report(model, X_test)"
    ),
    "the right loader": _program("print(accuracy(test_loader))"),
    "near miss: both": _program("print(accuracy(train_loader), accuracy(test_loader))"),
    "near miss: no score": _program("print(centre(train_loader))"),
    "the right dataset": _trainer("ds['test']"),
}
