"""What other tools catch, miss and falsely accuse on the incidents of the corpus, beside traindx.

python -m bench.peers [--half report] [--count 30] [--only PEER] [--jobs 1] [--again]

Answers are kept below the cache, so an interrupted measurement goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from bench.accuracy import pages
from bench.accuracy.incidents import CORPUS, HALVES
from bench.peers import page
from bench.peers.cases import Case, Failed, original_of, sample
from bench.peers.catching import CATCHERS, PROGRAMS_NEED, Catcher
from bench.peers.environments import CACHE, also_installed, python_of, version_of
from bench.peers.insertion import NotApplicable
from bench.peers.verdicts import Alarm, Outcome, Status, Verdict, distinct, judge

LOCKS: dict[str, Lock] = {}
HOOKED = ("torcheck", "torch-audit", "torchmortem", "TrainCheck")


def main(arguments: Sequence[str] | None = None) -> int:
    """Try every peer on a sample of incidents, keep the verdicts, print the table."""
    options = _options(arguments)
    chosen = sample(options.half, options.count, options.corpus)
    if not chosen:
        print(f"no incidents yet. Try: python -m bench.corpus --half {options.half}")
        return 0
    wanted = [c for c in CATCHERS if options.only in ("", c.name)]
    results = {}
    for catcher in wanted:
        python, why = _python(catcher)
        if python is None:
            results[catcher.name] = page.Result(catcher.name, catcher.used, "", why)
            continue
        verdicts = _try(catcher, python, chosen, options)
        version = version_of(python, catcher.package)
        results[catcher.name] = page.Result(
            catcher.name, catcher.used, version, "", tuple(verdicts)
        )
        page.keep(options.half, list(results.values()), is_part=bool(options.only))
    print(pages.to_markdown("Peers", [page.section(options.half)]))
    return 0


def _python(catcher: Catcher) -> tuple[Path | None, str]:
    if catcher.environment is None:
        return Path(sys.executable), ""
    python, why = python_of(catcher.environment)
    if python is not None and catcher.name in HOOKED:
        why = also_installed(python, PROGRAMS_NEED)
    return (None, why) if why else (python, "")


def _try(
    catcher: Catcher, python: Path, chosen: Sequence[Case], options: argparse.Namespace
) -> list[Verdict]:
    def attend(wanted: Case) -> Verdict:
        outcome = _outcome(catcher, python, wanted, options.again)
        original = None
        if outcome.alarms and not wanted.incident.is_healthy:
            plain = original_of(wanted, options.half, options.corpus)
            original = _outcome(catcher, python, plain, options.again) if plain else None
        verdict = judge(wanted.incident, outcome, original)
        print(_told(verdict, wanted), file=sys.stderr, flush=True)
        return verdict

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(attend, chosen))


def _told(verdict: Verdict, wanted: Case) -> str:
    outcome = verdict.outcome
    marks = [
        k for k in ("caught", "named", "mentioned", "false_alarm") if getattr(verdict, f"is_{k}")
    ]
    truth = wanted.incident.cause or "healthy"
    said = outcome.why or "; ".join(a.key for a in outcome.alarms)[:160] or "silent"
    return f"{outcome.peer} | {outcome.incident} | {truth} | {', '.join(marks) or '–'} | {said}"


def _outcome(catcher: Catcher, python: Path, wanted: Case, is_again: bool) -> Outcome:
    """Return what a peer says of a program, asked once at a time."""
    with LOCKS.setdefault(wanted.digest, Lock()):
        return _asked_once(catcher, python, wanted, is_again)


def _asked_once(catcher: Catcher, python: Path, wanted: Case, is_again: bool) -> Outcome:
    """Return what a peer said before, or ask it; traindx is asked anew, for it is being changed."""
    kept = CACHE / "outcomes" / catcher.name / f"{wanted.digest}.json"
    if kept.exists() and not is_again and catcher.name != "traindx":
        data = json.loads(kept.read_text(encoding="utf-8"))
        alarms = tuple(Alarm(**{**a, "causes": tuple(a["causes"])}) for a in data["alarms"])
        status = Status(data["status"])
        return Outcome(catcher.name, wanted.incident.name, status, alarms, data["why"])
    status, found, why = Status.USED, [], ""
    try:
        found = catcher.look(python, wanted)
    except NotApplicable as reason:
        status, why = Status.NOT_APPLICABLE, str(reason)
    except Failed as reason:
        status, why = Status.FAILED, str(reason)
    outcome = Outcome(catcher.name, wanted.incident.name, status, distinct(found), why)
    if not wanted.files:
        raise FileNotFoundError(f"{wanted.incident.folder} is gone")
    kept.parent.mkdir(parents=True, exist_ok=True)
    data = {**asdict(outcome), "status": status.value}
    kept.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return outcome


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--only", default="", choices=["", *(c.name for c in CATCHERS)])
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where the incidents are")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="ask again what was asked before")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
