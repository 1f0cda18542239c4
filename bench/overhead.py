"""Cost of riding along: step time with a recorder over step time without, beside the peers.

python -m bench.overhead [--only mlp] [--quick] [--no-others] [--no-compile] [--repeats 5]
    [--warm-up 4]

Ours and the plain way take turns of a fraction of a second (see `overhead_turns`): that tells one
percent from two. What costs tens of percent is measured more simply: every measurement is a process
of its own, compared with the plain run before it. CPU time counts every process that a way brings
along, the mean over all steps, so that those that are looked at closely count too; where the
machine is shared, wall time tells little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench import overhead_turns
from bench.overhead_turns import MEMORY, Taken
from bench.peers.environments import FOLDER, PEERS, Peer, python_of

HERE = Path(__file__).parent
ROOT = HERE.parent
PROGRAM = "bench.overhead_programs.training"
PROGRAMS = ("mlp", "cnn", "gpt")
TRIAL_STEPS = {"mlp": 300, "cnn": 60, "gpt": 25}
MEASURED_S = 8.0
QUICK_S = 3.0
LIMIT = 3.0  # times the duration of a plain run, for those that would take minutes
REPEATS = 5
PATIENCE_S = 900
RESULT = re.compile(r'\{"steps".*?\}')
KEPT = HERE / "cache" / "overhead.json"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to train: how its command begins, and what the program is told."""

    name: str
    python: tuple[str, ...]
    option: str = "plain"
    peer: Peer | None = None


@dataclass(slots=True)
class Row:
    """What was measured of one way on one program."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    why_not: str = ""


def _own_ways() -> list[Way]:
    python = (sys.executable,)
    return [
        Way("plain", python),
        Way("detect_anomaly", python, "anomaly"),
        Way("naive hooks with .item()", python, "naive"),
    ]


def _peer_ways() -> Iterator[Way]:
    for peer in PEERS:
        python, why = python_of(peer)
        if python is None:
            print(f"{peer.name} is left out: {why}\n", flush=True)
            continue
        yield Way(f"{peer.name}: plain", (str(python),), peer=peer)
        yield Way(peer.name, (str(python),), peer.module, peer)


def _command(way: Way, arguments: list[str], folder: Path) -> list[str]:
    told = [*arguments, "--way", way.option]
    if way.peer is not None and way.peer.launcher and way.option != "plain":
        launcher = [str(folder) if word == FOLDER else word for word in way.peer.launcher]
        return [*way.python, *launcher, *(told if FOLDER in way.peer.launcher else arguments)]
    return [*way.python, "-m", PROGRAM, *told]


def _measure(way: Way, arguments: list[str]) -> tuple[dict[str, float], str]:
    """Run one process; return its numbers, or why there are none."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        **MEMORY,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment["OVERHEAD_FOLDER"] = name  # for whatever a recorder writes
        try:
            ran = subprocess.run(
                _command(way, arguments, folder),
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return {}, "it took too long"
        found = RESULT.findall(ran.stdout)  # some colour what the program prints
        if ran.returncode or not found:
            if ran.returncode < 0:
                return {}, f"it was ended by signal {-ran.returncode}"
            complaints = ran.stderr.strip().splitlines() or ["it printed no result"]
            return {}, complaints[-1][:160]
        numbers: dict[str, float] = json.loads(found[-1])
        return numbers, ""


def _compare(
    ways: list[Way], program: str, backend: str, options: argparse.Namespace
) -> tuple[dict[str, Row], float]:
    """Let the ways take turns; return their ratios, and the milliseconds of a plain step."""
    given = [program, "--compile", backend] if backend else [program]
    trial, why = _measure(ways[0], [*given, "--steps", str(TRIAL_STEPS[program])])
    if not trial:
        return {way.name: Row(why_not=why) for way in ways}, 0.0
    measured_s = QUICK_S if options.quick else MEASURED_S
    steps = int(1.25 * measured_s * 1e3 / trial["cpu_mean_ms"])
    given += ["--steps", str(steps), "--limit", f"{LIMIT * measured_s:g}"]
    rows = {way.name: Row() for way in ways}
    plain_ms: list[float] = []
    for _ in range(options.repeats):
        base: dict[str, float] = {}
        for way in ways:
            row = rows[way.name]
            if row.why_not:
                continue
            numbers, row.why_not = _measure(way, given)
            if way.option == "plain":
                base = numbers
                plain_ms += [numbers["cpu_mean_ms"]] if numbers and way.peer is None else []
            elif numbers and base:
                row.cpu.append(numbers["cpu_mean_ms"] / base["cpu_mean_ms"])
                row.wall.append(numbers["wall_mean_ms"] / base["wall_mean_ms"])
    return rows, statistics.median(plain_ms or [0.0])


def _shown(ratios: list[float]) -> str:
    if not ratios:
        return "–"
    digits = 3 if statistics.median(ratios) < 2 else 1
    middle, low, high = (f(ratios) for f in (statistics.median, min, max))
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def _print(title: str, rows: dict[str, Row], plain_ms: float) -> None:
    print(f"\n| {title}, {plain_ms:.1f} ms of CPU per step | CPU × | wall × |")
    print("|---|---|---|")
    for name, row in rows.items():
        if name.endswith("plain") and not row.why_not:
            continue
        if row.why_not and not row.cpu:
            print(f"| {name} | does not run: {row.why_not} | |")
        else:
            print(f"| {name} | {_shown(row.cpu)} | {_shown(row.wall)} |")
    sys.stdout.flush()


def _keep(title: str, rows: dict[str, Row], plain_ms: float) -> None:
    """Add the ratios to what was kept of earlier measurements."""
    KEPT.parent.mkdir(exist_ok=True)
    entry = {
        "time": time.strftime("%Y-%m-%d %H:%M"),
        "program": title,
        "plain_ms": plain_ms,
        "ratios": {
            n: {"cpu": r.cpu, "wall": r.wall, "why_not": r.why_not} for n, r in rows.items()
        },
    }
    with KEPT.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _compare_ours(program: str, backend: str, options: argparse.Namespace) -> None:
    """Print what ours costs on one program."""
    given = [program, "--compile", backend] if backend else [program]
    trial, why = _measure(_own_ways()[0], [*given, "--steps", str(TRIAL_STEPS[program])])
    if not trial:
        print(f"\n{program} does not run: {why}")
        return
    measured_s = QUICK_S if options.quick else MEASURED_S
    turns = [
        overhead_turns.compare(given, trial["cpu_mean_ms"], measured_s, options.warm_up)
        for _ in range(options.repeats)
    ]
    step_ms = statistics.median(turn["traindx run"].plain_ms for turn in turns)
    title = f"{program}, {backend or 'eager'}, {step_ms:.1f} ms of CPU per step"
    print(f"\n| {title} | step CPU × | wall × | beside | once | reported | captured |")
    print("|---|---|---|---|---|---|---|")
    for name in turns[0]:
        _print_ours(name, [turn[name] for turn in turns])
    _keep_ours(title, turns)


def _print_ours(name: str, taken: list[Taken]) -> None:
    ratios = f"{_shown([t.step for t in taken])} | {_shown([t.wall for t in taken])}"
    claimed = [t.claimed for t in taken if t.claimed is not None]
    reported = f"{1 + statistics.median(claimed):.3f}" if claimed else ""
    beside = f"{statistics.median(t.beside for t in taken):.1%}" if claimed else ""
    once_s = [t.once_s for t in taken]
    once = f"{statistics.median(once_s):.1f} s" if any(once_s) else ""
    whole_ms = [t.captured_ms for t in taken if t.captured_ms is not None]
    captured = ""
    if whole_ms:
        step_ms = statistics.median(t.plain_ms for t in taken)
        captured = (
            f"{statistics.median(whole_ms):.0f} ms, {statistics.median(whole_ms) / step_ms:.1f} ×"
        )
    print(f"| {name} | {ratios} | {beside} | {once} | {reported} | {captured} |", flush=True)


def _keep_ours(title: str, turns: list[dict[str, Taken]]) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    values = [{name: asdict(taken) for name, taken in turn.items()} for turn in turns]
    entry = {"time": time.strftime("%Y-%m-%d %H:%M"), "program": title, "turns": values}
    with KEPT.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _processor() -> str:
    """Return the name of the processor, where the system tells it."""
    try:
        told = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        return platform.processor()
    return told[1] if told else platform.machine()


def _backend() -> tuple[str, str]:
    """Return the compiler to use here, and why if it is not the usual one."""
    trial, _ = _measure(_own_ways()[0], ["mlp", "--compile", "inductor", "--steps", "10"])
    return ("inductor", "") if trial else ("aot_eager", "inductor finds no C++ compiler here")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PROGRAMS, action="append")
    parser.add_argument("--quick", action="store_true", help="two repeats of three seconds")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--warm-up", type=float, default=4.0, metavar="S",
                        help="seconds of training before the measurement")  # fmt: skip
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--eager", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--others", action=argparse.BooleanOptionalAction, default=True,
                        help="anomaly mode, naive hooks and the peers")  # fmt: skip
    options, _ = parser.parse_known_args()
    options.repeats = options.repeats or (2 if options.quick else REPEATS)
    return options


def main() -> int:
    """Print a table for each program, eager and compiled."""
    options = _options()
    load: Callable[[], str] = lambda: ", ".join(f"{x:.1f}" for x in os.getloadavg())  # noqa: E731
    print(
        f"{time.strftime('%Y-%m-%d')}, {_processor()}, {os.cpu_count()} cores, one thread,"
        f" Python {platform.python_version()}, load average {load()};"
        f" {options.repeats} repeats after {options.warm_up:g} s of warm-up, median"
        f" (lowest–highest)\n{overhead_turns.DEFINITION}"
    )
    own = _own_ways()
    peers = list(_peer_ways()) if options.peers and options.others else []
    backend, why = _backend() if options.compile else ("", "")
    if why:
        print(f"compiled with {backend}: {why}")
    for program in options.only or PROGRAMS:
        for used in ([""] if options.eager else []) + ([backend] if backend else []):
            _compare_ours(program, used, options)
            if not options.others:
                continue
            title = f"{program}, {used or 'eager'}"
            rows, plain_ms = _compare([*own, *peers], program, used, options)
            _print(title, rows, plain_ms)
            _keep(title, rows, plain_ms)
            print(f"\nload average {load()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
