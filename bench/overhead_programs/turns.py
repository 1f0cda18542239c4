"""Train in turns with other processes: so many steps whenever told to, and waiting in between.

python -m bench.overhead_programs.turns mlp --socket PATH [--way watch] [--compile inductor]
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack

from bench.overhead_programs import clock

clock.make_holdable()  # before torch is imported

from bench.overhead_programs import training  # noqa: E402


def main() -> None:
    """Build the job, then do as told: a number of steps in, the time that they took out."""
    parser = training.parser()
    parser.add_argument("--socket", required=True)
    options = parser.parse_args()
    job = training.build(options)
    batches = job.batches()
    with ExitStack() as stack:
        channel = stack.enter_context(socket.socket(socket.AF_UNIX))
        channel.connect(options.socket)
        told = stack.enter_context(channel.makefile("rw"))
        step = training.attach(options.way, job, stack)
        # what other threads do while this one waits counts in the next turn
        ended_cpu_s = time.process_time()
        while True:
            told.write("\n")
            told.flush()
            with clock.held():
                count = int(told.readline() or 0)
            if not count:
                return
            began_s = time.perf_counter()
            for _ in range(count):
                inputs, targets = next(batches)
                step(inputs, targets)
            wall_s = time.perf_counter() - began_s
            now_s = time.process_time()
            told.write(json.dumps({"cpu_s": now_s - ended_cpu_s, "wall_s": wall_s}))
            ended_cpu_s = now_s


if __name__ == "__main__":
    main()
