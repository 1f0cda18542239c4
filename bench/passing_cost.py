"""What a step costs that the recorder lets pass, beside the same step without the recorder.

    python -m bench.passing_cost [--program mlp] [--blocks 60] [--blind | --free] [--warm-up 8]

Blocks of steps in one process take turns: hooks in place and every step let pass, hooks taken away.
The difference is what a step really costs; `timed` is the part that the recorder's own clock sees,
and their ratio is `HIDDEN` in `traindx.capture.recorder.budget`. With `--blind` nothing is asked of
the steps that pass; what they cost over what the others cost is `BLIND` there. With `--free` the
recorder itself decides what to do at which step, so the last column is what it costs in all.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import torch

from bench.overhead_programs import cnn, gpt, mlp
from bench.overhead_programs.job import Job
from traindx.capture import recorder
from traindx.capture.recorder.budget import HIDDEN
from traindx.capture.recorder.session import Session

PROGRAMS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}
BLOCK = {"mlp": 40, "cnn": 10, "gpt": 4}  # steps
FOR_EVER = 10**9


def block_s(job: Job, batches: Iterator[tuple[torch.Tensor, ...]], steps: int) -> float:
    """Return the CPU time of one step, over a block of them."""
    began = time.process_time()
    for _ in range(steps):
        job.step(*next(batches))
    return (time.process_time() - began) / steps


def measure(options: argparse.Namespace) -> tuple[list[float], list[float], float]:
    """Return the steps without hooks, those with them, and what the recorder timed of a step."""
    torch.set_num_threads(1)
    job, steps = PROGRAMS[options.program].make(), BLOCK[options.program]
    batches = job.batches()
    plain, heard = [], []
    with tempfile.TemporaryDirectory() as folder:
        session = recorder.start(folder)
        assert session.hooks is not None
        began = time.monotonic()
        while time.monotonic() - began < options.warm_up:
            block_s(job, batches, steps)
        for _ in range(options.blocks):
            session.hooks.remove()
            plain.append(block_s(job, batches, steps))
            session.hooks.install()
            session.hooks.on_model(job.model)
            if not options.free:
                _let_pass(session, is_blind=options.blind)
            heard.append(block_s(job, batches, steps))
            if not options.free:
                session.idle, session.is_blind, session.budget.blocks = 0, False, 1
        asked = max(1, session.budget.passed - session.budget.blind)
        timed_s = session.budget.asked_s / HIDDEN / asked
        session.finish()
        session.hooks.remove()
    return plain, heard, timed_s


def _let_pass(session: Session, *, is_blind: bool) -> None:
    session.idle = FOR_EVER
    session.is_blind = is_blind
    session.budget.blocks = FOR_EVER if is_blind else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print one row."""
    parser = argparse.ArgumentParser(prog="bench.passing_cost", description=__doc__)
    parser.add_argument("--program", choices=PROGRAMS, default="mlp")
    parser.add_argument("--blocks", type=int, default=60)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--blind", action="store_true")
    kinds.add_argument("--free", action="store_true")
    parser.add_argument("--warm-up", type=float, default=8.0, metavar="S")
    options = parser.parse_args(arguments)
    plain, heard, timed_s = measure(options)
    cost_s = statistics.median(b - a for a, b in zip(plain, heard, strict=True))
    ratio = sum(heard) / sum(plain)
    when = time.strftime("%Y-%m-%d")
    print(f"{when}, {platform.machine()}, one thread, {options.blocks} blocks\n")
    print("| program | step | cost of one with the recorder | timed by the recorder | cost × |")
    print("|---|---|---|---|---|")
    print(
        f"| {options.program} | {statistics.median(plain) * 1e3:.2f} ms | {cost_s * 1e6:.0f} µs | "
        f"{timed_s * 1e6:.0f} µs | {ratio:.4f} |"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
