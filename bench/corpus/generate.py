"""Writing the incidents: what the user of a faulty program would have, and what is true of it."""

from __future__ import annotations

import fcntl
import json
import random
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from bench.corpus import truth
from bench.corpus.operators import all_operators
from bench.corpus.plan import choose
from bench.corpus.program import Mutant, Program, programs
from bench.corpus.runs import Ran, Runner
from bench.corpus.truth import Health, Verdict

CACHE = Path(__file__).parents[1] / "cache" / "corpus"
SEEDS = (0, 1, 2)
HEALTHY_SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Order:
    """What is asked for."""

    half: str
    only: str = ""
    jobs: int = 1
    is_recorded: bool = True
    is_recorded_again: bool = False


@dataclass(frozen=True)
class Original:
    """A program without a fault, and how it does."""

    program: Program
    health: Health


def generate(order: Order) -> dict[str, int]:
    """Generate one half and return how many incidents of each verdict there are."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{order.half}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"the {order.half} half is being generated already") from None
        return _generate(order)


def _generate(order: Order) -> dict[str, int]:
    everything = programs(order.half)
    chosen = choose(everything, all_operators(), order.half)
    wanted = {p.name for p in everything if order.only in ("", p.name)}
    runners: SimpleQueue[Runner] = SimpleQueue()
    for _ in range(order.jobs):
        runners.put(Runner(CACHE))

    def attend(name: str) -> dict[str, int]:
        runner = runners.get()
        try:
            program = next(p for p in everything if p.name == name)
            return _attend(order, program, [m for m in chosen if m.program.name == name], runner)
        finally:
            runners.put(runner)

    counts: dict[str, int] = {}
    with ThreadPoolExecutor(order.jobs) as pool:
        for part in pool.map(attend, sorted(wanted)):
            for key, value in part.items():
                counts[key] = counts.get(key, 0) + value
    while not runners.empty():
        runners.get().close()
    return counts


def _attend(
    order: Order, program: Program, chosen: Sequence[Mutant], runner: Runner
) -> dict[str, int]:
    """Generate the incidents of one program."""
    runs = [runner.run(program, s) for s in HEALTHY_SEEDS]
    original = Original(program, truth.health(program, runs))
    counts: dict[str, int] = {}
    kept = set()
    for seed in (0, 3):
        folder = CACHE / order.half / f"{program.name}--as-it-is-{seed}"
        kept.add(folder.name)
        shown = runner.run(program, seed, is_launched=True)
        _write(folder, program, shown, _label_healthy(program, seed))
        _record(order, runner, folder, program, seed)
        counts["original"] = counts.get("original", 0) + 1
    for mutant in chosen:
        verdict = _attend_mutant(order, original, mutant, runner)
        counts[verdict.value] = counts.get(verdict.value, 0) + 1
        if verdict is not Verdict.UNCLEAR:
            kept.add(mutant.name)
    for folder in (CACHE / order.half).glob(f"{program.name}--*"):
        if folder.name not in kept:
            shutil.rmtree(folder)
    return counts


def _attend_mutant(order: Order, original: Original, mutant: Mutant, runner: Runner) -> Verdict:
    seed = random.Random(mutant.name).choice(SEEDS)
    ran = [runner.run(mutant.program, seed, is_launched=True)]
    more = truth.seeds_wanted(mutant, original.health, ran[0])
    twin = runner.run(original.program, seed, is_launched=True)
    others = [s for s in SEEDS if s != seed][:more]
    ran += [runner.run(mutant.program, s) for s in others]
    verdict = truth.judge(mutant, original.health, ran, twin)
    print(f"{mutant.name}: {verdict.value} {_told(mutant, original, ran)}", flush=True)
    if verdict is Verdict.UNCLEAR:
        return verdict
    if mutant.cause is None and verdict is not Verdict.TOO_WEAK:
        return Verdict.UNCLEAR  # an oddity that harms is no oddity
    folder = CACHE / order.half / mutant.name
    label = _label(mutant, seed, verdict, ran[0])
    label["outcomes"] = [r.outcome(mutant.program) for r in ran]
    label["healthy_outcomes"] = list(original.health.outcomes)
    _write(folder, mutant.program, ran[0], label)
    _record(order, runner, folder, mutant.program, seed)
    return verdict


def _told(mutant: Mutant, original: Original, ran: Sequence[Ran]) -> str:
    """Return what a verdict rests on, for the eyes of who runs this."""
    if ran[0].crashed:
        return f"(exit {ran[0].code}: {ran[0].log.strip()[-110:].splitlines()[-1:]})"
    outcomes = [r.outcome(mutant.program) for r in ran]
    gaps = [round(original.health.gap(o), 2) for o in outcomes if o is not None]
    return f"({outcomes} against {original.health.outcomes}, gaps {gaps})"


def _label_healthy(program: Program, seed: int) -> dict[str, object]:
    return {
        "incident": f"{program.name}--as-it-is-{seed}",
        "half": program.half,
        "program": program.name,
        "framework": program.framework,
        "task": program.family,
        "ranks": program.ranks,
        "command": " ".join(program.command),
        "family": "healthy",
        "operator": None,
        "form": None,
        "strength": None,
        "injected": None,
        "cause": None,
        "accepted": [],
        "file": None,
        "line": None,
        "matters": False,
        "crashed": False,
        "seed": seed,
    }


def _label(mutant: Mutant, seed: int, verdict: Verdict, ran: Ran) -> dict[str, object]:
    matters = verdict is Verdict.MATTERS
    return {
        **_label_healthy(mutant.program, seed),
        "incident": mutant.name,
        "family": mutant.operator.family,
        "operator": mutant.operator.name,
        "form": mutant.form.name,
        "strength": mutant.strength,
        "injected": mutant.cause,
        "cause": mutant.cause if matters else None,
        "accepted": list(dict.fromkeys([mutant.cause, *mutant.accepted])) if matters else [],
        "file": mutant.path,
        "line": mutant.line,
        "matters": matters,
        "judged": mutant.operator.judged.value,
        "crashed": ran.crashed,
    }


def _write(folder: Path, program: Program, ran: Ran, label: dict[str, object]) -> None:
    """Write an incident but for its recording."""
    for old in ("project", "artifacts"):
        shutil.rmtree(folder / old, ignore_errors=True)
    for path, text in program.files.items():
        file = folder / "project" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    artifacts = folder / "artifacts"
    artifacts.mkdir(parents=True)
    log = ran.log
    (artifacts / "log.txt").write_text(log, encoding="utf-8")
    at = log.find("Traceback (most recent call last)")
    if ran.crashed and at >= 0:
        (artifacts / "traceback.txt").write_text(log[at:], encoding="utf-8")
    if ran.checkpoint is not None:
        shutil.copy(ran.checkpoint, artifacts / ran.checkpoint.name)
    (folder / "label.json").write_text(json.dumps(label, indent=2) + "\n", encoding="utf-8")


def _record(order: Order, runner: Runner, folder: Path, program: Program, seed: int) -> None:
    """Record an incident, unless this very program was recorded before."""
    key = folder / "recording.key"
    told = program.digest("recording", str(seed))
    is_there = key.exists() and key.read_text() == told and (folder / "recording").exists()
    if not order.is_recorded or (is_there and not order.is_recorded_again):
        return
    key.unlink(missing_ok=True)
    code = runner.record(program, seed, folder / "recording")
    crashed = json.loads((folder / "label.json").read_text(encoding="utf-8"))["crashed"]
    if (code != 0) != crashed:
        shutil.rmtree(folder / "recording")  # ranks that race: it was another run than the label's
        return
    key.write_text(told)
