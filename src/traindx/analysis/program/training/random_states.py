"""Random states across a restart: which a checkpoint holds, and which training draws from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Part, Result, Value, origins
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.checkpoints import LoadedCheckpoint, Saved, loads, saves
from traindx.analysis.program.training.data import GENERATORS, feeds
from traindx.analysis.program.training.seeds import drawn, seeded

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

TAKES = {"torch.get_rng_state": "torch", "torch.random.get_rng_state": "torch",
         "numpy.random.get_state": "numpy", "random.getstate": "random"}  # fmt: skip
GIVES = {"torch.set_rng_state": "torch", "torch.random.set_rng_state": "torch",
         "numpy.random.set_state": "numpy", "random.setstate": "random"}  # fmt: skip
OWN_STATES = (".get_state", ".getstate", ".set_state", ".setstate", ".__getstate__", ".manual_seed",
              ".seed")  # fmt: skip


@dataclass(frozen=True, eq=False)
class LostRandomState:
    """Random numbers of training that do not go on where a checkpoint was taken."""

    source: str
    event: ProgramEvent  # where they are drawn, or their state is lost
    why: str
    save: Saved


def lost_random_states(story: Story) -> Iterator[LostRandomState]:
    """Yield what draws differently after a restart, in a program that saves random states."""
    resumed = [c for c in loads(story) if not c.is_open and c.restored]
    save = next((s for s in saves(story) if _taken(s)), None)
    if not resumed or save is None or not save.is_whole:
        return
    taken = {name for s in saves(story) for name in _taken(s)}
    given = {GIVES[e.name]: e for e in story.events if e.name in GIVES}
    yield from _left_out(story, save, taken)
    yield from _never_restored(save, taken - given.keys(), resumed)
    yield from _seeded_again(story, save, given)


def _taken(save: Saved) -> set[str]:
    """The global generators whose state something that is saved holds."""
    content = save.deed.subject
    found = origins(content, 400) if content is not None else ()
    return {TAKES[v.maker] for v in found if isinstance(v, Result) and v.maker in TAKES}


def _left_out(story: Story, save: Saved, taken: set[str]) -> Iterator[LostRandomState]:
    """Yield the draws of training from a generator whose state is never taken."""
    turns = {run.site.node for d in story.does(Do.STEP) for run in d.event.loops}
    for event in story.events:
        if not any(run.site.node in turns for run in event.loops):
            continue
        library = drawn(event)
        if library and library not in taken:
            why = f"drawn from {library}'s generator, whose state is not saved"
            yield LostRandomState(library, event, why, save)
        for generator in _own_generators(event):
            if _is_lost(story, save, generator):
                why = "drawn from a generator of its own, whose state is not saved"
                yield LostRandomState(generator.called("a generator"), event, why, save)
    yield from _orders(story, save)


def _orders(story: Story, save: Saved) -> Iterator[LostRandomState]:
    """Yield the loaders of training data whose own generator is not saved."""
    for feed in feeds(story):
        generator, made = feed.settings.get("generator"), story.giver_of(feed.loader)
        own = None if generator is None else _generator(generator)
        if own is not None and made is not None and feed.trains and _is_lost(story, save, own):
            why = "the order is drawn from a generator whose state is not saved"
            yield LostRandomState(own.called("a generator"), made, why, save)


def _own_generators(event: ProgramEvent) -> Iterator[Result]:
    """Yield the generators that an event draws from."""
    used = [event.kwargs.get("generator"), event.receiver if _draws(event) else None]
    for value in used:
        made = None if value is None else _generator(value)
        if made is not None:
            yield made


def _draws(event: ProgramEvent) -> bool:
    return event.act is EventForm.CALL and event.name.startswith(".") and (
        event.name not in OWN_STATES
    )  # fmt: skip


def _generator(value: Value) -> Result | None:
    """Return a generator that is made in sight, seeded or not."""
    while isinstance(value, Result) and value.maker == ".manual_seed" and value.receiver:
        value = value.receiver
    return value if isinstance(value, Result) and value.maker in GENERATORS else None


def _is_lost(story: Story, save: Saved, generator: Result) -> bool:
    """Tell whether nothing takes the state of a generator, seeds it in a loop, or may do so."""
    made = story.giver_of(generator)
    if made is None or made.turns or save.holds(generator):
        return False
    same = [generator, *story.made_from(generator)]
    same = [v for v in same if v is generator or getattr(v, "maker", "") == ".manual_seed"]
    used = [e for e in story.events if any(e.receiver is v for v in same)]
    if any(e.name in OWN_STATES and (e.name not in (".manual_seed", ".seed") or e.turns)
           for e in used):  # fmt: skip
        return False
    if any(isinstance(v, Part) and v.key == "bit_generator" for v in story.made_from(generator)):
        return False
    return all(story.escapes(v) is not Answer.YES for v in same)


def _never_restored(
    save: Saved, names: set[str], resumed: list[LoadedCheckpoint]
) -> Iterator[LostRandomState]:
    """Yield the states that are saved and that no checkpoint gives back."""
    for name in sorted(names):
        event = resumed[0].deed.event
        yield LostRandomState(name, event, f"the state of {name} is saved, and never set", save)


def _seeded_again(
    story: Story, save: Saved, given: dict[str, ProgramEvent]
) -> Iterator[LostRandomState]:
    """Yield the seeds that overwrite a state that was set, before training goes on from it."""
    first = min((d.event.order for d in story.does(Do.STEP)), default=0)
    for event in story.events:
        before = given.get(seeded(event))
        if before is None or event.name == "torch.Generator" or event.name in GIVES:
            continue
        if before.order < event.order < first and not event.guards:
            yield LostRandomState(
                seeded(event), event, "seeded again after its state was set", save
            )
