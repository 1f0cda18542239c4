"""A collective waited in vain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Evidence, Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source.errors import explain, is_joining, last_burst, make_failed_run, match_root

WORK = re.compile(
    r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+)(?:, NumelIn=(\d+), NumelOut=(\d+))?.{0,20}?Timeout\(ms\)"
    r"=(\d+)\)(?: ran for (\d+))?"
)
PLAIN = re.compile(
    r"Watchdog caught collective operation timeout|Timed out waiting (\d+)ms for (send|recv)"
    r"|timed out in blocking wait|wait timeout after (\d+)ms|timeout caused pair closure"
    r"|Connection (?:closed|reset) by peer|(?:Socket|socket) Timeout|ncclRemoteError"
    r"|remote process exited or there was a network error"
)
DIFFERENT = re.compile(
    r"Detected mismatch between collectives on ranks|collective.{0,40}(?:mismatch|not match)"
    r"|verifyWorkers|op\.preamble\.length <= op\.nbytes"
)
# the other end is not late but gone
GONE = re.compile(r"by peer|ncclRemoteError|remote process exited|pair closure")

GUESSES = {
    "collective-mismatch": Strength.MODERATE,
    "uneven-inputs": Strength.MODERATE,
    "straggler-rank": Strength.WEAK,
}


@detector(needs=("failure",), suggests=(*GUESSES, "rank-failed-first"))
def check(run: Run) -> Iterator[Finding]:
    """A collective operation is given up because not all ranks came.

    ## What it detects
    NCCL's watchdog timeouts and gloo's broken connections, with the operation, its number and its
    sizes, where no rank has an error of its own in the log; and a mismatch that torch itself
    detects. Ranks that wait in different operations are told apart by them.

    ## Why it matters
    The ranks that report the timeout are the ones that waited. The fault is with the rank that did
    not come: another branch, fewer batches, or a death without a message.

    ## What to do
    Look at what each rank did last; rerun with `TORCH_DISTRIBUTED_DEBUG=DETAIL`, which names the
    first collective in which they differ.

    ## When it is wrong
    A rank that is merely slow (first compilation, a long validation on rank 0) times out as well.
    """
    hit = match_root(run, DIFFERENT, WORK, PLAIN)
    if hit is None or is_joining(hit[0]):
        return  # ranks that never met have called no collective yet
    failure, found = hit
    if found.re is DIFFERENT:
        claim = "The ranks call different collectives, or with different shapes"
        yield explain(run, failure, claim, shows="collective-mismatch")
        return
    waits: dict[int | None, set[tuple[str, str, str | None]]] = {}
    for each in last_burst(run):
        if (work := WORK.search(each.message)) is not None:
            waits.setdefault(each.rank, set()).add((work[1], work[2], work[3]))
    notes = [
        Evidence(f"rank {r} waits in {kind} number {n}", failure.artifact, failure.locator)
        for r, works in waits.items()
        if r is not None
        for n, kind, _ in sorted(works)[:1]
    ]
    # a rank that waits in several is a member of several groups, each of which counts for itself
    is_one_group = all(len(works) == 1 for works in waits.values())
    if is_one_group and len(set.union(set(), *waits.values())) > 1:
        claim = "The ranks wait for each other in different collectives"
        yield explain(run, failure, claim, shows="collective-mismatch", notes=notes)
        return
    claim = f"A collective was given up{_words(found)}, and no rank says why"
    gone = {"rank-failed-first": Strength.MODERATE} if GONE.search(found[0]) else {}
    yield explain(run, failure, claim, suggests={**gone, **GUESSES}, notes=notes)


def _words(found: re.Match[str]) -> str:
    if found.re is not WORK:
        return f" ({found[0]})"
    size = f" of {int(found[3]):,} elements" if found[3] else ""
    waited = int(found[6] or found[5]) / 1000
    return (
        f": {found[2]} number {found[1]}{size} waited {waited:.0f} s of {int(found[5]) // 1000} s"
    )


def _watchdog(number: int, kind: str) -> str:
    return (
        f"torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={number}, OpType={kind}, NumelIn=1024, NumelOut=1024, "
        "Timeout(ms)=1800000) ran for 1800095 milliseconds before timing out."
    )


_RANKS = [
    make_failed_run(_watchdog(5, "ALLREDUCE"), rank=0).failures[0],
    make_failed_run(_watchdog(6, "ALLGATHER"), rank=1).failures[0],
]

FIRES = {
    "one collective": make_failed_run(_watchdog(1580, "ALLREDUCE"), rank=0),
    "two different ones": make_run(failures=_RANKS),
    "gloo": make_failed_run(
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
        "waiting 1800000ms for recv operation to complete"
    ),
}

_GROUPS = [
    *(make_failed_run(_watchdog(n, "ALLREDUCE"), rank=0).failures[0] for n in (96120, 96117)),
    make_failed_run(_watchdog(64088, "ALLREDUCE"), rank=7).failures[0],
]
FIRES["a rank of several groups"] = make_run(failures=_GROUPS)

SILENT = {
    "near miss: another rank failed": make_run(
        failures=[
            make_failed_run("KeyError: 'label'", "y = b['label']", rank=1).failures[0],
            *_RANKS,
        ]
    ),
    "near miss: the group was never made": make_failed_run(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /default_pg/0//cpu/0",
        "dist.init_process_group('gloo', world_size=3, rank=rank)",
    ),
    "another error": make_failed_run("KeyError: 'label'"),
}
