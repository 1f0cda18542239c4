"""Collectives that only some ranks call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import Guard, ProgramEvent, is_same_call
from traindx.analysis.program.execution.values import Known, Result, Site, Value, origins
from traindx.analysis.program.training.claims import is_same_scope
from traindx.analysis.program.training.data import is_own_rank
from traindx.analysis.program.training.kinds import Kind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COLLECTIVES = frozenset(
    {"all_reduce", "all_gather", "all_gather_object", "all_gather_into_tensor", "broadcast",
     "broadcast_object_list", "reduce", "gather", "scatter", "barrier", "reduce_scatter",
     "all_to_all", "monitored_barrier", "gather_object", "reduce_scatter_tensor"}
)  # fmt: skip
OF_ENGINES = frozenset({".gather", ".gather_for_metrics", ".reduce", ".wait_for_everyone",
                        ".all_reduce", ".all_gather", ".barrier"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class LoneCollective:
    """A collective, and the condition on the rank under which alone it is reached."""

    event: ProgramEvent
    guard: Guard

    @property
    def name(self) -> str:
        return self.event.name.rsplit(".", 1)[-1]

    @property
    def place(self) -> Site | ProgramEvent:
        """The call beside the condition that leads to it."""
        calls = [site for site in self.event.callers if is_same_scope(site, self.guard.site)]
        return calls[-1] if calls else self.event


def lone_collectives(story: Story) -> Iterator[LoneCollective]:
    """Yield the collectives that some ranks call and the others do not."""
    guarded = [(e, g) for e in story.events if _is_collective(story, e) and (g := _guard(e))]
    for event, guard in guarded:
        if event.node is not guard.site.node and not _is_met(event, guard, story):
            yield LoneCollective(event, guard)


def _is_collective(story: Story, event: ProgramEvent) -> bool:
    home, last = event.name.rpartition(".")[::2]
    if home == "torch.distributed":
        return last in COLLECTIVES and "group" not in event.kwargs
    if event.name == ".state_dict" and isinstance(event.receiver, Result):
        return event.receiver.maker.endswith("FullyShardedDataParallel")  # gathers all shards
    return event.name in OF_ENGINES and story.is_kind(event.receiver, Kind.ENGINE)


def _guard(event: ProgramEvent) -> Guard | None:
    """The condition on the rank under which a collective runs."""
    return next((g for g in event.guards if g.test is not None and _asks_rank(g.test)), None)


def _asks_rank(test: Value) -> bool:
    """Tell whether a condition compares the rank of this process with a number."""
    for value in origins(test, 40):
        if not isinstance(value, Result):
            continue
        is_compared = value.maker in ("operator.eq", "operator.ne", "operator.gt", "operator.not")
        if is_compared and any(map(_is_rank, value.args)):
            return all(_is_rank(v) or isinstance(v, Known) for v in value.args)
    return _is_rank(test)


def _is_rank(value: Value) -> bool:
    while isinstance(value, Result) and value.maker == "builtins.int" and value.args:
        value = value.args[0]
    return is_own_rank(value)


def _is_met(event: ProgramEvent, guard: Guard, story: Story) -> bool:
    """Tell whether the other ranks call the same collective under another condition."""
    for other in story.events:
        if other.name != event.name or is_same_call(other, event):
            continue
        ranked = (g for g in other.guards if g.test is not None and _depends_on_rank(g.test))
        for theirs in ranked:
            if theirs.site.node is not guard.site.node or theirs.holds is not guard.holds:
                return True
    return False


def _depends_on_rank(test: Value) -> bool:
    return any(_is_rank(value) for value in origins(test, 40))
