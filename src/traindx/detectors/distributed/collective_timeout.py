from traindx.analysis.errors.messages import causes_in, finding, known_error
from traindx.analysis.errors.process_group_messages import (
    COLLECTIVES,
    collective_times,
    waits_by_rank,
)
from traindx.analysis.errors.root_failure import is_joining
from traindx.examples import failed, make_run
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=causes_in(COLLECTIVES))
def check(run: Run) -> Findings:
    """A collective operation times out because not all ranks joined it.

    ## What it detects
    NCCL's watchdog timeouts and gloo's broken connections, with the operation, its number and its
    sizes, where no rank has an error of its own in the log; and a mismatch that torch itself
    detects. Ranks that wait in different operations are reported as such.

    ## Why it matters
    The ranks that report the timeout are the ones that waited. The fault is with the rank that did
    not come: another branch, fewer batches, or a death without a message.

    ## What to do
    Look at what each rank did last; rerun with `TORCH_DISTRIBUTED_DEBUG=DETAIL`, which names the
    first collective in which they differ.

    ## When it is wrong
    A rank that is merely slow (first compilation, a long validation on rank 0) times out as well.
    """
    known = known_error(run, COLLECTIVES)
    if known is None or is_joining(known.failure):
        return  # ranks that never met have called no collective yet
    if known.kind == "different":
        yield finding(known)
        return
    waits = waits_by_rank(run)
    notes = [
        note
        for rank, works in waits.items()
        if rank is not None
        for number, operation in sorted(works)[:1]
        for note in known.note(f"rank {rank} waits in collective {operation} number {number}")
    ]
    # a rank that waits in several is a member of several groups, each of which counts for itself
    is_one_group = all(len(works) == 1 for works in waits.values())
    if is_one_group and len(set.union(set(), *waits.values())) > 1:
        claim = "The ranks wait for each other in different collectives"
        yield finding(known, claim, cause="collective-mismatch", notes=notes)
    else:
        yield finding(known, known.claim(**collective_times(known)), notes=notes)


def _watchdog(number: int, kind: str) -> str:
    return (
        f"torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={number}, OpType={kind}, NumelIn=1024, NumelOut=1024, "
        "Timeout(ms)=1800000) ran for 1800095 milliseconds before timing out."
    )


_RANKS = [
    failed(_watchdog(5, "ALLREDUCE"), rank=0).failures[0],
    failed(_watchdog(6, "ALLGATHER"), rank=1).failures[0],
]

FIRES = {
    "one collective": failed(_watchdog(1580, "ALLREDUCE"), rank=0),
    "two different ones": make_run(failures=_RANKS),
    "gloo": failed(
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
        "waiting 1800000ms for recv operation to complete"
    ),
}

_GROUPS = [
    *(failed(_watchdog(n, "ALLREDUCE"), rank=0).failures[0] for n in (96120, 96117)),
    failed(_watchdog(64088, "ALLREDUCE"), rank=7).failures[0],
]
FIRES["a rank of several groups"] = make_run(failures=_GROUPS)

SILENT = {
    "near miss: another rank failed": make_run(
        failures=[failed("KeyError: 'label'", "y = b['label']", rank=1).failures[0], *_RANKS]
    ),
    "near miss: the group was never made": failed(
        "torch.distributed.DistStoreError: wait timeout after 20000ms, keys: /default_pg/0//cpu/0",
        "dist.init_process_group('gloo', world_size=3, rank=rank)",
    ),
    "another error": failed("KeyError: 'label'"),
}
