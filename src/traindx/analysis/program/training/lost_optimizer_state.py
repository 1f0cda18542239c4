"""The state of an optimizer that is saved, and does not come back when training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Value, options_of
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import (
    LOOKS,
    LoadedCheckpoint,
    is_written_in_vain,
    loads,
    made_after,
    saves,
)
from traindx.analysis.program.training.claims import insert_after
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.ownership import holding_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story


@dataclass(frozen=True, eq=False)
class UnreadState:
    """A checkpoint that gives back the model and leaves the state of the optimizer in the file."""

    loaded: LoadedCheckpoint
    model: Deed  # where the model is restored
    saved: Deed
    key: object
    optimizer: Value

    @property
    def name(self) -> str:
        return min(sorted(self.optimizer.names - {"self"}), key=len, default="optimizer")

    def patch(self) -> str | None:
        """Return the patch that restores the optimizer beside the model."""
        site, event = self.optimizer.site, self.model.event
        if event.callers or (site is not None and site.module is not event.module):
            return None
        checkpoint = min(sorted(self.loaded.value.names), key=len, default="checkpoint")
        text = f'{self.name}.load_state_dict({checkpoint}["{self.key}"])'
        return insert_after(self.model, text)


def unread_states(program: Program, story: Story) -> Iterator[UnreadState]:
    """Yield the checkpoints that training goes on from without the optimizer's saved state."""
    saved = _saved(program)
    for loaded in loads(story) if saved is not None else ():
        kinds = [story.kind_of(d.subject).kind for d in loaded.restored]
        if Kind.MODEL not in kinds or {Kind.OPTIMIZER, Kind.UNKNOWN} & set(kinds):
            continue
        if saved is None or not loaded.is_resumed or loaded.is_open:
            continue
        if saved[0] in loaded.keys and not _is_spent_in_vain(story, loaded, saved[0]):
            continue
        key, optimizer, deed = saved
        yield UnreadState(loaded, loaded.restored[kinds.index(Kind.MODEL)], deed, key, optimizer)


def _is_spent_in_vain(story: Story, loaded: LoadedCheckpoint, key: object) -> bool:
    """Tell whether an entry is read for its options, or to change a dictionary nobody loads."""
    entry = loaded.value.fields.get(("part", key))
    if entry is None:
        return False
    read = {k[1] for k in entry.fields if isinstance(k, tuple) and k[0] == "part"}
    uses = [e for e in story.events if e.receiver is entry or story.is_given(e, entry)]
    return read <= {"param_groups"} and all(
        is_written_in_vain(story, e) or _only_looks(e) for e in uses
    )


def _only_looks(event: ProgramEvent) -> bool:
    is_call = event.act is EventForm.CALL
    return is_call and (event.name in LOOKS or event.name.startswith(("builtins.", "logging.")))


def _saved(program: Program) -> tuple[object, Value, Deed] | None:
    """The key under which a program saves the state of an optimizer, the optimizer, and where."""
    for story in program.stories:
        for save in saves(story):
            for key, owner in save.states.items():
                if key is not None and story.kind_of(owner).kind is Kind.OPTIMIZER:
                    return key, owner, save.deed
    return None


@dataclass(frozen=True, eq=False)
class ReplacedOptimizer:
    """An optimizer that is restored and never steps, and the one that trains in its place."""

    restored: Deed
    new: Value
    is_later: bool  # whether the new one is made after the state is restored


def replaced_optimizers(story: Story) -> Iterator[ReplacedOptimizer]:
    """Yield the optimizers that are restored while another trains their parameters."""
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
            yield ReplacedOptimizer(deed, new, made_after(story, new, deed.event))


def _takes_over(story: Story, old: Value, new: Value) -> bool:
    """Tell whether an optimizer has parameters of another, into which no state is loaded."""
    restored = (d.subject for d in story.does(Do.LOAD_STATE))
    if new.site is None or any(s is new for s in restored):
        return False
    held = holding_of(story, new)
    return any(held.has(layer) for layer in holding_of(story, old).layers)
