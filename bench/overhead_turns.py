"""Ways to train that take turns of a fraction of a second, so that all meet the same machine.

The speed of a shared machine drifts by a tenth from one minute to the next, which is five times
what is to be measured. So the processes of all ways are there at once, and one of them trains at a
time, for a few steps, while the others wait; the next round begins with another one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent
PROGRAM = "bench.overhead_programs.turns"
PATIENCE_S = 300.0  # until a process has built its model, or compiled it
TICKS = os.sysconf("SC_CLK_TCK")
# The allocator gives memory back and takes it again at some steps and not at others, by the luck of
# the layout: 0 to 440 page faults per step of the same program, a tenth of its time. Not here.
MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 31), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
# the second plain one is the control: how far the same thing differs from itself
AGAIN = "plain, against itself"
WAYS = ("plain", AGAIN, "traindx run", "traindx.watch")
TURN_S = 0.2
DEFINITION = (
    "step CPU ×: CPU time of the training process per step, all steps counted, over that of plain;"
    f" {len(WAYS)} processes take turns of {TURN_S:g} s after a warm-up; malloc keeps its memory."
    " beside: what the parent and its looks took meanwhile, of one core. once:"
    " CPU time more than plain before and after: start, warm-up and first looks, last diagnosis."
    " captured: wall time of looking in the dearest step that is captured whole, over a plain step."
)


@dataclass(slots=True)
class Rider:
    """One way: its process, how to talk to it, and what it has taken so far."""

    name: str
    process: subprocess.Popen[bytes]
    talk: IO[str]
    cpu_s: float = 0.0
    wall_s: float = 0.0
    beside_s: float = 0.0  # CPU time of the parent and of its looks, while the rounds lasted
    whole_s: float = 0.0  # CPU time of everything, from start to end

    def turn(self, steps: int) -> None:
        """Let it train for some steps."""
        self.talk.write(f"{steps}\n")
        self.talk.flush()
        taken = json.loads(self.talk.readline())
        self.cpu_s += taken["cpu_s"]
        self.wall_s += taken["wall_s"]

    def beside(self) -> float:
        """Return what the process has taken that is not the training one, with its looks."""
        if self.name != "traindx run":
            return 0.0
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICKS

    def end(self) -> None:
        """Let it end, and take down what it took as a whole."""
        self.talk.write("0\n")
        self.talk.flush()
        self.talk.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.whole_s = usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True)
class Taken:
    """What one way took, against the plain ones of the same rounds."""

    step: float  # CPU time in the training process
    wall: float
    beside: float  # share of one core that the parent and its looks took meanwhile
    once_s: float  # more CPU time than plain outside the rounds: start, first looks, diagnosis
    plain_ms: float
    claimed: float | None = None
    captured_ms: float | None = None  # of looking, in the dearest step that was captured whole


def compare(
    given: list[str], step_ms: float, measured_s: float, warm_up_s: float
) -> dict[str, Taken]:
    """Let all ways take turns; return what each took after the warm-up, each of so many seconds."""
    steps = max(1, round(1e3 * TURN_S / step_ms))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        riders = [_start(way, given, folder, stack) for way in WAYS]
        _take_turns(riders, steps, round(warm_up_s / TURN_S))
        for rider in riders:
            rider.cpu_s = rider.wall_s = 0.0
            rider.beside_s = -rider.beside()
        began_s = time.perf_counter()
        rounds = round(measured_s / TURN_S)
        _take_turns(riders, steps, rounds)
        elapsed_s = time.perf_counter() - began_s
        for rider in riders:
            rider.beside_s += rider.beside()
        for rider in riders:
            rider.end()
        claimed, captured_ms = _claimed(folder / "run"), _captured_ms(folder / "run")
    taken = _judge(riders, elapsed_s, steps * rounds, claimed)
    taken["traindx run"] = replace(taken["traindx run"], captured_ms=captured_ms)
    return taken


def _judge(
    riders: list[Rider], elapsed_s: float, steps: int, claimed: float | None
) -> dict[str, Taken]:
    plain, again = riders[:2]
    cpu_s, wall_s = (plain.cpu_s + again.cpu_s) / 2, (plain.wall_s + again.wall_s) / 2
    rest_s = {r.name: r.whole_s - r.cpu_s - r.beside_s for r in riders}
    usual_s = (rest_s[plain.name] + rest_s[again.name]) / 2
    taken = {AGAIN: Taken(again.cpu_s / plain.cpu_s, again.wall_s / plain.wall_s, 0.0, 0.0, 0.0)}
    for rider in riders[2:]:
        taken[rider.name] = Taken(
            rider.cpu_s / cpu_s,
            rider.wall_s / wall_s,
            rider.beside_s / elapsed_s,
            rest_s[rider.name] - usual_s,
            1e3 * cpu_s / steps,
            claimed if rider.name == "traindx run" else None,
        )
    return taken


def _take_turns(riders: list[Rider], steps: int, rounds: int) -> None:
    for number in range(rounds):
        first = number % len(riders)
        for rider in riders[first:] + riders[:first]:
            rider.turn(steps)


def _start(way: str, given: list[str], folder: Path, stack: ExitStack) -> Rider:
    """Start a process and wait until it is ready for its first turn."""
    path = str(folder / f"{way.replace(' ', '-')}.socket")
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(path)
    listener.listen(1)
    listener.settimeout(PATIENCE_S)
    option = "watch" if way == "traindx.watch" else "plain"
    command = [sys.executable, "-m", PROGRAM, *given, "--way", option, "--socket", path]
    if way == "traindx run":
        ride = [sys.executable, "-m", "traindx", "run", "--output", str(folder / "run"), "--"]
        command = ride + command
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            **MEMORY,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.callback(_make_sure_it_ended, process)
    channel, _ = listener.accept()
    stack.callback(channel.close)
    talk = channel.makefile("rw")
    talk.readline()
    return Rider(way, process, talk)


def _make_sure_it_ended(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        process.kill()
        process.wait()


def _claimed(folder: Path) -> float | None:
    """Return the overhead that our recorder reported at the end."""
    for path in folder.glob("rank*.jsonl"):
        counts = [json.loads(t) for t in path.read_text().splitlines() if '"k":"counts"' in t]
        if counts:
            return float(counts[-1]["overhead"])
    return None


def _captured_ms(folder: Path) -> float | None:
    """Return what looking took in the dearest training step that was captured whole."""
    lines = (t for path in folder.glob("rank*.jsonl") for t in path.read_text().splitlines())
    found = [json.loads(t) for t in lines if '"k":"captured"' in t]
    costs = [1e3 * c["cost_s"] for c in found if c["kind"] == "training" and "cost_s" in c]
    return max(costs, default=None)
