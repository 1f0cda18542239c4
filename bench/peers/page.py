"""The results of the comparison, kept as JSON, and their part of the report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.pages import Section, Table
from bench.peers.catching import SKIPPED
from bench.peers.environments import CACHE
from bench.peers.verdicts import Alarm, Counts, Outcome, Status, Verdict, count

MOST_REASONS = 2
PROSE = (
    "Every tool on the same programs, used as its own documentation says, in an environment of its "
    "own (what comes with torch and transformers: in that of this repository). "
    "The sample is chosen by seed from the incidents with a plain training loop in one "
    "process, for most of the tools support nothing else. An alarm is any message of the level "
    "warning or worse. *Caught*: an alarm on a faulty program that the tool does not raise on the "
    "program without the fault. *Named*: what such an alarm says fits the words for the true "
    "cause, by one table of words for everybody (traindx: the identifier of the cause). "
    "*Mentioned*: it fits at least with the list of further causes and advice. *False alarms*: "
    "healthy runs with any alarm, other than one that names a fault that proved too weak to "
    "matter. Counts are over the programs that the tool could be used on."
)
LIMITS = (
    "These are counts of a small sample; a difference of one or two means nothing. A warning about "
    "speed or style (no loader workers, sizes that suit no tensor core) is a warning, and counts "
    "as a false alarm on a healthy run. A rule that speaks up on the program without the fault, "
    "run once, gets no credit for speaking up on the one with it. The words are "
    "generous to the tools: advice to look at the learning rate names a learning rate that is too "
    "high. A symptom is worth something too: a tool that only says that the loss is NaN has caught "
    "the fault and not named it."
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one peer did, or why it could not be tried."""

    peer: str
    used: str
    version: str
    skipped: str = ""
    verdicts: tuple[Verdict, ...] = ()


def path_of(half: str) -> Path:
    """Return where the results of one half are kept."""
    return CACHE / f"results-{half}.json"


def keep(half: str, results: Iterable[Result], *, is_part: bool = False) -> None:
    """Write the results; those of some peers replace what was known of them."""
    known: dict[str, Any] = {}
    if is_part and path_of(half).exists():
        known = json.loads(path_of(half).read_text(encoding="utf-8"))
    for result in results:
        known[result.peer] = asdict(result)
    path_of(half).parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(known, indent=1, default=lambda x: x.value)
    path_of(half).write_text(text + "\n", encoding="utf-8")


def read(half: str) -> list[Result]:
    """Return the results of an earlier measurement."""
    if not path_of(half).exists():
        return []
    known = json.loads(path_of(half).read_text(encoding="utf-8"))
    return [_result(x) for x in known.values()]


def _result(data: Mapping[str, Any]) -> Result:
    return Result(
        data["peer"],
        data["used"],
        data["version"],
        data["skipped"],
        tuple(Verdict(**{**v, "outcome": _outcome(v["outcome"])}) for v in data["verdicts"]),
    )


def _outcome(data: Mapping[str, Any]) -> Outcome:
    alarms = tuple(Alarm(**{**a, "causes": tuple(a["causes"])}) for a in data["alarms"])
    return Outcome(data["peer"], data["incident"], Status(data["status"]), alarms, data["why"])


def section(half: str = "report") -> Section:
    """Return the part of the report on the peers."""
    results = read(half)
    if not results:
        return Section("Peers", ("Not measured yet: `python -m bench.peers`.",))
    head = (
        "tool", "version", "used by", "caught", "named", "mentioned", "false alarms",
        "not applicable", "failed", "why",
    )  # fmt: skip
    tried = Table(head, tuple(_row(r, count(r.verdicts)) for r in results if not r.skipped))
    left_out = {
        **SKIPPED,
        **{r.peer: f"will not install: {r.skipped}" for r in results if r.skipped},
    }
    skipped = Table(("not tried", "why"), tuple(left_out.items()))
    first = max((r for r in results), key=lambda r: len(r.verdicts)).verdicts
    healthy = sum(v.is_healthy for v in first)
    size = f"The sample: {len(first) - healthy} faulty and {healthy} healthy runs ({half} half)."
    return Section("Peers", (PROSE, size, tried, LIMITS, skipped))


def _row(result: Result, counts: Counts) -> tuple[str, ...]:
    reasons = sorted(counts.reasons.items(), key=lambda x: -x[1])
    told = [f"{why} ({n})" for why, n in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        told.append(f"and {len(reasons) - MOST_REASONS} more")
    return (
        result.peer,
        result.version,
        result.used,
        f"{counts.caught}/{counts.faulty}",
        f"{counts.named}/{counts.faulty}",
        f"{counts.mentioned}/{counts.faulty}",
        f"{counts.false_alarms}/{counts.healthy}",
        str(counts.not_applicable),
        str(counts.failed),
        "; ".join(told),
    )
