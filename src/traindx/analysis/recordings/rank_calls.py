"""Ranks that stand still in collectives: where they disagree, and who is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from traindx.analysis.recordings.ranks import (
    Standstill,
    call_kind,
    caught_words,
    lost_connections,
    own_places,
    ranks_of,
    standstills,
    training_loader,
)
from traindx.model.findings import Evidence, cite_record
from traindx.model.recording import Place, Process
from traindx.model.run import Run

Call = Mapping[str, object]


def first_disagreement(
    members: Sequence[Standstill], group: str
) -> list[tuple[Standstill, Call]] | None:
    """Return two ranks that called different things under one number, with their calls."""
    made = [s.calls_in(group) for s in members]
    common = set.intersection(*map(set, made)) if len(made) > 1 else set()
    for number in sorted(common):
        kinds = [call_kind(calls[number]) for calls in made]
        if len(set(kinds)) > 1:
            other = next(s for s, k in zip(members, kinds, strict=True) if k != kinds[0])
            return [(s, s.calls_in(group)[number]) for s in (members[0], other)]
    return None


def missing_rank(
    members: Sequence[Standstill], group: str
) -> tuple[Standstill, Standstill, Call, list[int]] | None:
    """Return a rank that called less than others, one that is ahead, its call and who waits."""
    if len(members) < 2:
        return None
    last = {s.process.rank: s.last_call(group) for s in members}
    behind = min(members, key=lambda s: last[s.process.rank])
    number = last[behind.process.rank] + 1
    ahead = next((s for s in members if last[s.process.rank] >= number), None)
    if ahead is None or ahead.pending is None or behind.waits_for_ranks:
        return None
    call = ahead.calls_in(group).get(number) or ahead.pending
    return behind, ahead, call, [rank for rank, n in last.items() if n >= number]


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """A rank that came to its end, one that still counts on it, and where."""

    gone: Process
    whom: Process
    place: Place | None
    evidence: tuple[Evidence, ...]

    @property
    def has_as_many_batches(self) -> bool:
        """Whether both went through loaders of one length."""
        lengths = {x.batches for p in (self.gone, self.whom) if (x := training_loader(p))}
        return len(lengths) == 1 and None not in lengths


def early_end(run: Run) -> EarlyEnd | None:
    """Return the rank that came to its end and is missing from all that the others still do."""
    ranks = ranks_of(run)
    waiting = [s for s in standstills(run) if s.process.world_size > 1 and s.waits_for_ranks]
    lost = lost_connections(run)
    ended = [p for p in ranks if p.counts and p.counts.is_end and not p.caught and not p.stalls]
    counts = ended[0].counts if ended else None
    if counts is None or not (waiting or lost):
        return None
    gone, whom = ended[0], waiting[0].process if waiting else lost[0][0]
    place = waiting[0].place if waiting else next(iter(own_places(lost[0][1].places)[-1:]), None)
    says = f"rank {gone.rank} ended after {counts.steps} steps, without an error"
    evidence = [cite_record(gone, counts.line, says, step=counts.steps)]
    evidence += [s.evidence() for s in waiting]
    evidence += [cite_record(p, c.line, f"rank {p.rank} raised {caught_words(c)}") for p, c in lost]
    return EarlyEnd(gone, whom, place, tuple(evidence[:4]))
