"""What each rank of a program reads, and whether all of them get as many batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.examples import is_loader, settings_of
from traindx.analysis.program.execution.values import (
    Answer,
    Generator,
    Instance,
    Items,
    Known,
    Result,
    Value,
    depends_on,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.checkpoints import COMPARED
from traindx.analysis.program.training.data import (
    SEEDS,
    Feed,
    depends_on_rank,
    draws_in,
    feeds,
    is_rank,
)
from traindx.analysis.program.training.phases import source_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SAMPLER = "torch.utils.data.DistributedSampler"
WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")
MEETINGS = frozenset({"all_reduce", "broadcast", "all_gather", "all_gather_object", "barrier",
                      "all_reduce_coalesced", "monitored_barrier", "broadcast_object_list",
                      "reduce", "gather"})  # fmt: skip
READS = frozenset({"load", "read_csv", "open", "read_parquet", "loadtxt", "read_json"})
TABLES = frozenset({"read_csv", "read_parquet", "read_json", "read_feather", "read_table",
                    "loadtxt", "genfromtxt", "load_from_disk"})  # fmt: skip
CAPS = frozenset({"itertools.islice", "builtins.zip", "operator.floordiv", "builtins.min",
                  "math.floor", "itertools.cycle"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class UnevenShares:
    """A loop in which ranks meet at every step, over parts of data that differ in length."""

    share: LoopRun  # goes over the part of this rank
    wrapped: Value
    step: Deed


def uneven_shares(story: Story) -> Iterator[UnevenShares]:
    """Yield the training loops of ranks that each go over their own files or shards to the end."""
    wrapped = next(
        (e for e in story.events if e.name.rsplit(".", 1)[-1] in (*WRAPPERS, "DDP")), None
    )
    if wrapped is None or wrapped.result is None or _joins(story):
        return
    for step in story.does(Do.STEP):
        loops = list(_loops_to(story, step))
        share = _share(loops) or _own_file(step) or _packed(story, step) or _own_files(story, step)
        if share is not None and not _is_agreed(story, step, loops):
            yield UnevenShares(share, wrapped.result, step)


def _joins(story: Story) -> bool:
    """Tell whether ranks that are done early go on with the others."""
    names = (e.name.rsplit(".", 1)[-1].lower() for e in story.events)
    return any(name in ("join", "joinable") for name in names)


def _loops_to(story: Story, step: Deed) -> Iterator[LoopRun]:
    """Yield the loops around a step, those included that run inside of what it goes over."""
    for run in step.event.loops:
        over = None if run.over is None else source_of(run.over)
        if isinstance(over, Generator):
            continue
        if not is_loader(over):
            yield run
            continue
        for example in story.execution.examples:
            yield from example.loops if example.loader is over else ()


def _share(loops: list[LoopRun]) -> LoopRun | None:
    """The loop over the shards of a rank, each of which has a length of its own."""
    for position, run in enumerate(loops):
        is_cut = run.over is not None and _is_dealt(run.over)
        if is_cut and any(_is_of_unknown_length(inner) for inner in loops[position + 1 :]):
            return run
    return None


def _packed(story: Story, step: Deed) -> LoopRun | None:
    """The loop over batches that a rank packs of its own share by what the examples hold."""
    for run in step.event.loops:
        over = None if run.over is None else source_of(run.over)
        if over is None or not is_loader(over) or "batch_sampler" not in settings_of(over):
            continue
        done = [e for x in story.execution.examples if x.loader is over for e in x.order]
        if any(e.name.rsplit(".", 1)[-1] in MEETINGS for e in done):
            continue
        dealt = [e.result for e in done if e.result is not None and _is_every_nth(e.result)]
        if dealt and any(e.name == ".append" and _is_by_content(e, dealt) for e in done):
            return run
    return None


def _is_by_content(event: ProgramEvent, dealt: list[Value]) -> bool:
    """Tell whether a batch is closed by a condition on what is in the share, not on its count."""
    tests = [g.test for g in event.guards if g.test is not None]
    looked_up = (
        v for t in tests for v in origins(t, 200)
        if isinstance(v, Result) and v.maker == "operator.getitem" and len(v.args) == 2
    )  # fmt: skip
    return any(depends_on(v.args[1], share) for v in looked_up for share in dealt)


def _own_file(step: Deed) -> LoopRun | None:
    """The loop over a loader of what a rank reads from a file of its own: `f"part{rank}.pt"`."""
    for run in step.event.loops:
        over = None if run.over is None else source_of(run.over)
        data = settings_of(over).get("dataset") if over is not None and is_loader(over) else None
        for value in origins(data, 100) if data is not None else ():
            is_read = isinstance(value, Result) and value.maker.rsplit(".", 1)[-1] in READS
            if is_read and any(is_rank(v) for given in value.inputs for v in origins(given, 20)):
                return run
    return None


def _own_files(story: Story, step: Deed) -> LoopRun | None:
    """The loop over a loader of a dataset that is made of every n-th file, each of its length."""
    read = [e.result for e in story.events if e.result is not None and _reads_dealt(e)]
    for run in step.event.loops if read else ():
        over = None if run.over is None else source_of(run.over)
        data = settings_of(over).get("dataset") if over is not None and is_loader(over) else None
        if data is not None and any(_holds(data, value) for value in read):
            return run
    return None


def _reads_dealt(event: ProgramEvent) -> bool:
    """Tell whether a file is read that was dealt to this rank."""
    if event.name.rsplit(".", 1)[-1] not in TABLES or not event.args:
        return False  # an image is one example, and so may be an array
    return any(_is_every_nth(v) for v in origins(event.args[0], 60))


def _holds(data: Value, read: Value, depth: int = 5) -> bool:
    """Tell whether a dataset has rows of what was read, itself or in what it is joined from."""
    for value in origins(data, 200):
        parts = value.fields.values() if isinstance(value, Instance) and depth else ()
        if value is read or any(_holds(part, read, depth - 1) for part in parts):
            return True
    return False


def _is_dealt(over: Value) -> bool:
    """Tell whether a value is every n-th of something, from the rank on."""
    for value in origins(over, 200):
        if not isinstance(value, Result):
            continue
        if value.maker in CAPS:
            return False
        if _is_every_nth(value):
            return True
    return False


def _is_every_nth(value: Value) -> bool:
    """`files[rank::world]`, `range(rank, n, world)`."""
    is_cut = isinstance(value, Result) and value.maker == "operator.getitem"
    bounds = value.args[1] if is_cut and isinstance(value, Result) else value
    makers = ("builtins.range", "builtins.slice")
    if not isinstance(bounds, Result) or bounds.maker not in makers or len(bounds.args) != 3:
        return False
    return any(is_rank(v) for v in origins(bounds.args[0], 20))


def _is_of_unknown_length(run: LoopRun) -> bool:
    over = None if run.over is None else source_of(run.over)
    if over is None or (isinstance(over, Items) and over.is_whole):
        return False
    is_range = isinstance(over, Result) and over.maker == "builtins.range"
    return not (is_range and all(isinstance(a, Known) for a in over.inputs))


def _is_agreed(story: Story, step: Deed, loops: list[LoopRun]) -> bool:
    """Tell whether the number of steps is bounded, or the ranks ask each other in the loop."""
    inner = step.event.loops[-1]
    if any(isinstance(v, Result) and v.maker in CAPS for run in (*step.event.loops, *loops)
           if run.over is not None for v in origins(run.over, 60)):  # fmt: skip
        return True
    for event in story.events:
        if not any(run.site.node is inner.site.node for run in event.loops):
            continue
        if event.name in COMPARED or event.name.rsplit(".", 1)[-1] in MEETINGS:
            return True
    return False


def _is_whole(story: Story, feed: Feed) -> bool:
    """Tell whether every rank reads all data in the same order."""
    sampler, example = feed.sampler, feed.example
    made = () if example is None else (*example.events, *example.order)
    if depends_on_rank(feed.dataset) or depends_on_rank(sampler) or any(map(_asks_rank, made)):
        return False
    if sampler is not None:
        is_read = isinstance(sampler, Instance) and example is not None and bool(example.order)
        own = () if example is None else tuple(draws_in(example.order))
        if not is_read or not all(_has_generator(e) for e in own):
            return False
    elif _seeds_by_rank(story) or "generator" in feed.settings:
        return False
    used = [e for run in feed.runs for e in story.events if any(x is run for x in e.loops)]
    is_seen = story.escapes(feed.loader) is Answer.NO and not _is_sampler_handed_on(story)
    return is_seen and not any(map(_takes_part, used))


def _is_sampler_handed_on(story: Story) -> bool:
    """Tell whether a distributed sampler goes elsewhere than into a loader."""
    made = [e.result for e in story.events if e.name == SAMPLER and e.result is not None]
    uses = [e for value in made for e in story.uses(value)]
    return any(e.name != ".set_epoch" and not is_loader(e.result) for e in uses)


def _asks_rank(event: ProgramEvent) -> bool:
    return any(v is not None and is_rank(v) for v in (event.result, event.receiver))


def _has_generator(event: ProgramEvent) -> bool:
    """Tell whether numbers are drawn from a generator that is seeded alike on all ranks."""
    result = event.result
    given = event.kwargs.get("generator") or event.receiver
    return isinstance(result, Result) and given is not None and not depends_on_rank(given)


def _seeds_by_rank(story: Story) -> bool:
    """Tell whether each rank shuffles for itself: `torch.manual_seed(seed + rank)`."""
    return any(
        e.name.rsplit(".", 1)[-1] in SEEDS and any(map(depends_on_rank, e.args))
        for e in story.events
    )


def _takes_part(event: ProgramEvent) -> bool:
    """`if i % world_size != rank: continue`, or `batch[rank::world_size]`, in the loop."""
    given = (g.test for g in event.guards)
    if any(_divides(test) for test in given if test is not None):
        return True
    picked = event.result
    is_picked = isinstance(picked, Result) and picked.maker == "operator.getitem"
    return is_picked and depends_on_rank(picked)


def _divides(test: Value) -> bool:
    found = (v for v in origins(test, 60) if isinstance(v, Result))
    return depends_on_rank(test) and any(v.maker == "operator.mod" for v in found)


@dataclass(frozen=True, eq=False)
class WholeFeed:
    """A loader from which every rank trains on all of the data, in one order."""

    feed: Feed
    wrapped: ProgramEvent
    idle_sampler: Value | None


def whole_feed(story: Story) -> WholeFeed | None:
    """Return the first loader of a wrapped model in whose order the rank has no part."""
    wrapped = next((e for e in story.events if e.name.rsplit(".", 1)[-1] in WRAPPERS), None)
    if wrapped is None:
        return None
    idle = (e.result for e in story.events if e.name == SAMPLER and e.result is not None)
    feed = next((f for f in feeds(story) if f.trains and _is_whole(story, f)), None)
    return None if feed is None else WholeFeed(feed, wrapped, next(idle, None))
