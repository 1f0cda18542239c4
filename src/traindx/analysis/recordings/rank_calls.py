"""Ranks that stand still in collectives: where they disagree, and who is missing."""

from collections.abc import Mapping, Sequence

from traindx.analysis.recordings.ranks import Standstill, call_kind

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
