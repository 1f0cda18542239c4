"""A checkpoint holds the optimizer's state and resuming leaves it there."""

from traindx.analysis.program.execution.values import Answer, Value, options_of
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import LoadedCheckpoint, loads, made_after, saves
from traindx.analysis.program.training.claims import cite, finding, insert_after
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.ownership import holding_of
from traindx.analysis.program.training.program import Program, Story, program_of
from traindx.analysis.program.training.restoration import asked_in_vain
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

CAUSE = "resume-without-optimizer-state"


@detector(needs=("source",), suggests=("resume-without-optimizer-state",))
def check(run: Run) -> Findings:
    """Resuming restores the model and the epoch and not the optimizer, though it was saved.

    ## What it detects
    A program that saves an optimizer's state, and on resuming reads the weights and the epoch or
    step at which training goes on from the checkpoint and never the optimizer's state. And one that
    restores an optimizer while another for the same parameters is the one that trains, or that
    restores it only if the checkpoint has a key under which nothing is saved.

    ## Why it matters
    Momentum and Adam's averages start at zero: the loss jumps where the run resumed, and the first
    steps may undo hours of training.

    ## What to do
    `optimizer.load_state_dict(checkpoint["optimizer"])` beside the model's, after the optimizer has
    its final form.

    ## When it is wrong
    Fine-tuning from a checkpoint starts a new optimizer on purpose; it does not read the epoch, and
    is left alone. So are weights that come back after training, to be tested, and a checkpoint that
    is handed on, or read by keys that are not written there: more may be restored from it.
    """
    program = program_of(run)
    saved = _saved(program)
    seen: set[object] = set()
    for story in program.stories:
        found = [f for c in loads(story) if saved is not None for f in _left_out(c, *saved)]
        for one in (*found, *_replaced(story)):
            if one.location not in seen:
                seen.add(one.location)
                yield one
    for asked in asked_in_vain(program):
        if asked.is_of(Kind.OPTIMIZER) and asked.restored.event.location not in seen:
            seen.add(asked.restored.event.location)
            yield finding(
                f"The checkpoint has no key {asked.key!r}: the optimizer is never restored",
                CAUSE,
                asked.restored,
                cite(asked.restored, f"restored only if there is {asked.key!r}"),
                cite(asked.save, f"saved here under {', '.join(sorted(asked.written))}"),
                is_symptom=True,
            )


def _saved(program: Program) -> tuple[object, Value, Deed] | None:
    """The key under which a program saves the state of an optimizer, the optimizer, and where."""
    for story in program.stories:
        for save in saves(story):
            for key, owner in save.states.items():
                if key is not None and story.kind_of(owner).kind is Kind.OPTIMIZER:
                    return key, owner, save.deed
    return None


def _left_out(loaded: LoadedCheckpoint, key: object, optimizer: Value, saved: Deed) -> Findings:
    story = loaded.story
    kinds = [story.kind_of(d.subject).kind for d in loaded.restored]
    if Kind.MODEL not in kinds or {Kind.OPTIMIZER, Kind.UNKNOWN} & set(kinds):
        return
    if key in loaded.keys or not loaded.is_resumed or loaded.is_open:
        return
    model = loaded.restored[kinds.index(Kind.MODEL)]
    name = min(sorted(optimizer.names - {"self"}), key=len, default="optimizer")
    checkpoint = min(sorted(loaded.value.names), key=len, default="checkpoint")
    is_made = optimizer.site is None or optimizer.site.module is model.event.module
    text = f'{name}.load_state_dict({checkpoint}["{key}"])'
    yield finding(
        f"Resuming restores the model and the epoch and not `{name}`",
        CAUSE,
        model,
        cite(model, "the model is restored here, the optimizer nowhere"),
        cite(saved, f"its state is saved here under {key!r}"),
        is_symptom=True,
        patch=insert_after(model, text) if is_made and not model.event.callers else None,
    )


def _replaced(story: Story) -> Findings:
    """Optimizers that are restored and never step: another one, made later, does."""
    for deed in story.does(Do.LOAD_STATE):
        old = deed.subject
        if old is None or not story.is_kind(old, Kind.OPTIMIZER):
            continue
        later = [d for d in story.does(Do.STEP) if d.event.order > deed.event.order]
        subjects = [o for d in later if d.subject is not None for o in options_of(d.subject)]
        if not subjects or any(s is old for s in subjects):
            continue
        new = next((s for s in subjects if _takes_over(story, old, s)), None)
        if new is not None and story.escapes(old) is Answer.NO:
            yield finding(
                "The optimizer whose state is restored is replaced before training goes on"
                if made_after(story, new, deed.event)
                else "The optimizer whose state is restored is not the one that trains",
                CAUSE,
                new,
                cite(deed, "the state is restored into one optimizer"),
                cite(new, "and the one that is made here, with an empty state, trains"),
                is_symptom=True,
            )


def _takes_over(story: Story, old: Value, new: Value) -> bool:
    """Tell whether an optimizer has parameters of another, into which no state is loaded."""
    restored = (d.subject for d in story.does(Do.LOAD_STATE))
    if new.site is None or any(s is new for s in restored):
        return False
    held = holding_of(story, new)
    return any(held.has(layer) for layer in holding_of(story, old).layers)


_PROGRAM = """
import torch

optimizer = torch.optim.Adam(model.parameters())
start_epoch = 0
if args.resume:
    checkpoint = torch.load("last.pt")
    model.load_state_dict(checkpoint["model"])
    {more}
for epoch in range(start_epoch, 10):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    state = {{"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}}
    torch.save(state, "last.pt")
"""
_EPOCH = 'start_epoch = checkpoint["epoch"] + 1'

_TEST = """
best = torch.load("last.pt")
model.load_state_dict(best["model"])
epoch = best["epoch"]
print(epoch, test(model))
"""


def _program(more: str) -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(more=more)})


_FUNCTION = """
def {name}(path, model):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    epoch = checkpoint["epoch"]
    return model, epoch

{start}
"""


def _by_function(name: str, start: str) -> Run:
    text = _FUNCTION.format(name=name, start=start) + _program("pass").sources[0].text
    return make_run(sources={"train.py": text})


_ENGINE = """
import torch

class Engine:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def resume(self, path):
        saved = torch.load(path)
        self.net.load_state_dict(saved["net"])
        self.opt.load_state_dict(saved["opt"])

    def fit(self, loader):
        {first}
        for x, y in loader:
            self.opt.zero_grad()
            torch.nn.functional.mse_loss(self.net(x), y).backward()
            self.opt.step()

engine = Engine(torch.nn.Linear(4, 1))
engine.resume("last.pt")
engine.fit(loader)
"""

FIRES = {
    "restored, and replaced by a new one": make_run(
        sources={
            "train.py": _ENGINE.format(first="self.opt = torch.optim.Adam(self.net.parameters())")
        }
    ),
    "the optimizer is left out": _program(_EPOCH),
    "by a function": _by_function("resume", 'model, start_epoch = resume("last.pt", model)'),
}

SILENT = {
    "restored by an engine": make_run(sources={"train.py": _ENGINE.format(first="pass")}),
    "restored": _program(f'optimizer.load_state_dict(checkpoint["optimizer"])\n    {_EPOCH}'),
    "near miss: all by a loop over names": _program(
        f"for n, x in parts.items():\n        x.load_state_dict(checkpoint[n])\n    {_EPOCH}"
    ),
    "near miss: handed on": _program(f"restore(optimizer, checkpoint)\n    {_EPOCH}"),
    "near miss: handed on by its entry": _program(
        f'restore(steps, checkpoint["optimizer"])\n    {_EPOCH}'
    ),
    "near miss: a new run from old weights": _program("pass"),
    "near miss: a function that brings the best weights back": _by_function(
        "best", 'model, at = best("best.pt", model)\nprint(at)'
    ),
    "near miss: the epoch is only told": _program('print("from epoch", checkpoint["epoch"])'),
    "near miss: the best weights come back for the test": make_run(
        sources={"train.py": _program("pass").sources[0].text + _TEST}
    ),
}
