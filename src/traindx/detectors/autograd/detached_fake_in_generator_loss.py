"""A generator whose adversarial loss does not reach it."""

from dataclasses import dataclass, field

from traindx.analysis.program.execution.values import Answer, Result, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import cite, finding, replace, source_text
from traindx.analysis.program.training.gradients import (
    Cut,
    cuts_before,
    runs_behind,
    runs_reached,
)
from traindx.analysis.program.training.ownership import owns
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("detached-loss",))
def check(run: Run) -> Findings:
    """The discriminator judges a detached sample for the loss of the generator.

    ## What it detects
    A program with two optimizers, one of which only ever steps after losses that reach nothing but
    the network that the other optimizer trains, since the output of its own network is detached.

    ## Why it matters
    `detach` belongs into the discriminator's turn. In the generator's it cuts the only path by
    which the verdict could teach it: the adversarial term has no gradient, the generator follows
    its other terms or nothing, and the discriminator wins.

    ## What to do
    Give the discriminator the sample itself when the generator is trained.

    ## When it is wrong
    A loss with another term that reaches the generator is left alone, and so are programs in which
    it cannot be seen which optimizer steps after which loss.
    """
    for story in program_of(run).stories:
        turns = _turns_of(story)
        for turn in turns:
            others = [t for t in turns if t.optimizer is not turn.optimizer]
            if turn.backward and others and _is_lost(turn, others):
                yield _finding(turn)
                return


@dataclass(eq=False)
class _Turn:
    """What an optimizer steps after: the layers that its losses reach, and what is cut off."""

    optimizer: Value
    backward: list[Deed] = field(default_factory=list)
    runs: list[Result] = field(default_factory=list)
    reached: list[Value] = field(default_factory=list)
    cuts: list[Value] = field(default_factory=list)


def _turns_of(story: Story) -> list[_Turn]:
    found: dict[int, _Turn] = {}
    waiting: list[Deed] = []
    for deed in story.does(Do.BACKWARD, Do.STEP):
        if deed.do is Do.BACKWARD:
            waiting.append(deed)
        elif deed.subject is not None:
            turn = found.setdefault(id(deed.subject), _Turn(deed.subject))
            for backward in waiting:
                _add(turn, backward)
            waiting = []
    return list(found.values())


def _add(turn: _Turn, backward: Deed) -> None:
    if backward.subject is None:
        return
    turn.backward.append(backward)
    reached = runs_reached(backward.subject, certain=False)
    turn.runs += reached
    turn.reached += [r.receiver for r in reached if r.receiver is not None]
    cuts = cuts_before(backward.subject, certain=False)
    turn.cuts += [cut for how, cut in cuts if how is Cut.DETACHED]


def _is_lost(turn: _Turn, others: list[_Turn]) -> bool:
    """Tell whether the losses of an optimizer reach only what others train, its own being cut."""
    theirs = [v for other in others for v in other.reached]
    if not turn.reached or not all(any(v is t for t in theirs) for v in turn.reached):
        return False
    behind = [r.receiver for cut in turn.cuts for r in runs_behind(cut, certain=False)]
    own = [v for v in behind if v is not None and not any(v is t for t in theirs)]
    owned = {owns(turn.optimizer, v) for v in own}
    if not own or Answer.NO in owned:
        return False
    if any(owns(turn.optimizer, v) is Answer.YES for v in turn.reached):
        return False
    return owned == {Answer.YES} or all(_is_of(run, own) for run in turn.runs)


def _is_of(run: Result, networks: list[Value]) -> bool:
    """Tell whether a network ran on what others made: a discriminator also sees real data."""
    below = [r.receiver for r in runs_behind(run, certain=False)]
    return any(b is n for b in below for n in networks)


def _finding(turn: _Turn) -> Finding:
    cut, backward = turn.cuts[0], turn.backward[0]
    operand = cut.receiver if isinstance(cut, Result) else None
    place = cut if cut.site is not None else backward
    name = backward.text or "the loss"
    return finding(
        f"`{name}` does not reach the generator: its sample is detached",
        "detached-loss",
        place,
        cite(place, "this value has no history"),
        cite(backward, "and this loss is to train the network behind it"),
        is_symptom=True,
        patch=None if operand is None or operand.site is None else _patch(cut, operand),
    )


def _patch(cut: Value, operand: Value) -> str | None:
    """Take the detach away where its operand is written in it."""
    name = next((n for n in sorted(operand.names) if source_text(cut).startswith(f"{n}.")), "")
    return replace(cut, name) if name else None


_TURNS = """
import torch
import torch.nn.functional as F

def train_step(G, D, real, noise, opt_g, opt_d):
    fake = G(noise)
    d_loss = F.mse_loss(D(real), torch.ones(8, 1)) + F.mse_loss(D(fake.detach()), torch.zeros(8, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    verdict = D({sample})
    {loss}
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
"""


def _turns(sample: str, loss: str = "g_loss = F.mse_loss(verdict, torch.ones(8, 1))") -> Run:
    return make_run(sources={"train.py": _TURNS.format(sample=sample, loss=loss)})


FIRES = {
    "against the label of real data": _turns("fake.detach()"),
    "negated": _turns("fake.detach()", "g_loss = -verdict.mean()"),
}

SILENT = {
    "the sample itself": _turns("fake"),
    "near miss: detached in the discriminator's turn": _turns("fake", "g_loss = -verdict.mean()"),
    "near miss: detached and only shown": _turns(
        "fake.detach()", "g_loss = -D(fake).mean(); print(verdict)"
    ),
}
