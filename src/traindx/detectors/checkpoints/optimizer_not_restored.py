from collections.abc import Iterator

from traindx.analysis.program.training.claims import finding
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.lost_optimizer_state import (
    ReplacedOptimizer,
    replaced_optimizers,
    unread_states,
)
from traindx.analysis.program.training.program import Program, program_of
from traindx.analysis.program.training.restoration import asked_in_vain
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector

CAUSE = "resume-without-optimizer-state"


@detector(needs=("source",), suggests=("resume-without-optimizer-state",))
def check(run: Run) -> Findings:
    """Resuming restores the model and the epoch and not the optimizer, though it was saved.

    ## What it detects
    A program that saves an optimizer's state, and on resuming reads the weights and the epoch or
    step at which training goes on from the checkpoint and never the optimizer's state, or only to
    change the dictionary that `optimizer.state_dict()` returned, which is a copy. And one that
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
    seen: set[object] = set()
    for found in _findings(program_of(run)):
        if found.location not in seen:
            seen.add(found.location)
            yield found


def _findings(program: Program) -> Iterator[Finding]:
    for story in program.stories:
        for found in unread_states(program, story):
            yield finding(
                f"Resuming restores the model and the epoch and not `{found.name}`",
                (found.model, "the model is restored here, the optimizer nowhere"),
                (found.saved, f"its state is saved here under {found.key!r}"),
                patch=found.patch(),
            )
        yield from map(_replaced, replaced_optimizers(story))
    for asked in asked_in_vain(program):
        if asked.is_of(Kind.OPTIMIZER):
            yield finding(
                f"The checkpoint has no key {asked.key!r}, so the optimizer is never restored",
                (asked.restored, f"restored only if there is {asked.key!r}"),
                (asked.save, f"saved here under {', '.join(sorted(asked.written))}"),
            )


def _replaced(found: ReplacedOptimizer) -> Finding:
    how = "replaced before training goes on" if found.is_later else "not the one that trains"
    return finding(
        f"The optimizer whose state is restored is {how}",
        (found.restored, "the state is restored into one optimizer"),
        (found.new, "and the one that is made here, with an empty state, trains"),
        at=found.new,
    )


_PROGRAM = """
{helper}
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
{then}
"""
_program = template(_PROGRAM, more="pass", helper="", then="")
_EPOCH = 'start_epoch = checkpoint["epoch"] + 1'
_RESTORE = """
def restore_model(path, model):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    epoch = checkpoint["epoch"]
    return model, epoch

"""
_engine = template("""
class Engine:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def resume(self, path):
        saved = torch.load(path)
        self.net.load_state_dict(saved["net"])
        self.opt.load_state_dict(saved["opt"])

    def fit(self, loader):
        {first:pass}
        for x, y in loader:
            self.opt.zero_grad()
            torch.nn.functional.mse_loss(self.net(x), y).backward()
            self.opt.step()

engine = Engine(torch.nn.Linear(4, 1))
engine.resume("last.pt")
engine.fit(loader)
""")

FIRES = {
    "restored, and replaced by a new one": _engine(
        "self.opt = torch.optim.Adam(self.net.parameters())"
    ),
    "the optimizer is left out": _program(_EPOCH),
    "into a copy of its state": _program(
        f'optimizer.state_dict().update(checkpoint["optimizer"]); {_EPOCH}'
    ),
    "by a function": _program(
        helper=_RESTORE + 'model, start_epoch = restore_model("last.pt", model)'
    ),
}

_TEST = """
best = torch.load("last.pt")
model.load_state_dict(best["model"])
epoch = best["epoch"]
print(epoch, test(model))
"""

SILENT = {
    "restored by an engine": _engine(),
    "restored": _program(f'optimizer.load_state_dict(checkpoint["optimizer"]); {_EPOCH}'),
    "near miss: a changed state is loaded": _program(
        'state = optimizer.state_dict(); state.update(checkpoint["optimizer"])'
        f"; optimizer.load_state_dict(state); {_EPOCH}"
    ),
    "near miss: all by a loop over names": _program(
        f"for n, x in parts.items(): x.load_state_dict(checkpoint[n])\n    {_EPOCH}"
    ),
    "near miss: handed on": _program(f"restore(optimizer, checkpoint); {_EPOCH}"),
    "near miss: handed on by its entry": _program(
        f'restore(steps, checkpoint["optimizer"]); {_EPOCH}'
    ),
    "near miss: a new run from old weights": _program(),
    "near miss: a function that brings the best weights back": _program(
        helper=_RESTORE + 'model, at = restore_model("best.pt", model)\nprint(at)'
    ),
    "near miss: the epoch is only printed": _program('print("from epoch", checkpoint["epoch"])'),
    "near miss: the best weights come back for the test": _program(then=_TEST),
}
