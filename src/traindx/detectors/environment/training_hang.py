from traindx.analysis.recordings.ranks import Standstill, standstills, what_it_waits_for
from traindx.examples import Ending, Place, Process, Stall, recorded
from traindx.registry import Findings, Run, Strength, detector, finding

INTERRUPT = 2  # the signal of Ctrl-C


@detector(
    needs=("recording",),
    suggests=("collective-mismatch", "rank-failed-first", "uneven-inputs", "worker-crash",
              "data-loading-bound", "checkpoint-overhead"),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The run hung, and where it stood when it was ended.

    ## What it detects
    A process that took no batch, no forward pass and no step for many times its usual step, until
    the recording ended. Names the line of the user's code at which the main thread stood, and what
    it waited for: other ranks, the data loader, another thread, or nothing that is known.

    ## Why it matters
    A hang raises no error. All there is to find is where it stands.

    ## What to do
    Read the line. In a collective, look at what the other ranks do; in the data loader, run with
    `num_workers=0`; at a lock, find who holds it.

    ## When it is wrong
    A long pause that was cut off before it ended looks the same: saving, a large evaluation in
    plain Python, waiting for input. While the command still runs, only known kinds of waiting are
    reported, once they were seen twice; a debugger's prompt never.
    """
    still = [s for s in standstills(run) if not s.is_asking]
    if not still:
        return
    ending = run.recording.ending if run.recording is not None else None
    main = next((s for s in still if not s.waits_for_ranks), still[0])
    kind, guesses = what_it_waits_for(main, still)
    if not kind and ending is not None and ending.is_running:
        return
    # whoever stopped it knows best whether it hung, if nothing shows that it waited
    is_mere_stop = not kind and ending is not None and ending.signal == INTERRUPT
    waited = f"{main.stall.waited_s:.0f} s"
    who = f"Rank {main.process.rank}" if main.process.world_size > 1 else "The run"
    yield finding(
        f"{who} hung for {waited} without progress; it {main.words()}{kind}",
        guesses,
        *(s.evidence(_says(s)) for s in (main, *(x for x in still if x != main))[:4]),
        strength=Strength.WEAK if is_mere_stop else Strength.STRONG,
        is_symptom=not is_mere_stop,
        onset=main.stall.step,
        place=main.place,
    )


def _says(still: Standstill) -> str:
    rank = f"rank {still.process.rank} " if still.process.world_size > 1 else ""
    return f"{rank}{still.words()} after {still.stall.waited_s:.0f} s without progress"


def _process(*stack: Place, **told: object) -> Process:
    main = Place("/home/me/train.py", 20, "main", "for x, y in loader:")
    stacks = (("MainThread", (main, *stack)),)
    return Process(stalls=(Stall(9, 40, 60.0, 0.1, stacks, **told),))  # type: ignore[arg-type]


_LIB = "/usr/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
_LOADER = _process(
    Place(_LIB, 1131, "_try_get_data"), Place("/usr/lib/python3.11/queue.py", 180, "get")
)
_PENDING = {"seq": 9, "op": "gloo:all_reduce", "group": "0", "is_retired": False}
_WAITS = _process(collectives=(_PENDING,))
_SLEEPS = _process(Place("/home/me/data.py", 7, "read", "while True: pass"))
_PROMPT = _process(Place("/usr/lib/python3.11/pdb.py", 99, "interaction"))
_OVER = Process(stalls=(*_SLEEPS.stalls, Stall(12, 40, 70.0, is_over=True)))
_TERMINATED = Ending(signal=15)

FIRES = {
    "the data loader": recorded(_LOADER, ending=_TERMINATED),
    "an example": recorded(
        _process(Place(_LIB, 700, "_next_data"), Place("/home/me/data.py", 7, "__getitem__")),
        ending=_TERMINATED,
    ),
    "a collective": recorded(_WAITS, Process(), ending=_TERMINATED),
    "an endless loop": recorded(_SLEEPS, ending=Ending(signal=9)),
    "the data loader, interrupted": recorded(_LOADER, ending=Ending(signal=2)),
    "still running, seen twice": recorded(
        Process(stalls=_LOADER.stalls * 2), ending=Ending(is_running=True)
    ),
}

SILENT = {
    "near miss: it went on": recorded(_OVER, ending=_TERMINATED),
    "near miss: a pause at the end": recorded(_SLEEPS, ending=Ending(exit_code=0)),
    "near miss: still running, not known to wait": recorded(
        Process(stalls=_SLEEPS.stalls * 2), ending=Ending(is_running=True)
    ),
    "near miss: a debugger's prompt": recorded(_PROMPT, ending=Ending(signal=2)),
    "no stall": recorded(Process(), ending=_TERMINATED),
}
