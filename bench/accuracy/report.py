"""The scores as a report: headline, by artifacts, by family, calibration, what is confused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.accuracy import calibration, figures
from bench.accuracy.fixing import Fixed
from bench.accuracy.incidents import HEALTHY, SETS, WHOLE, Incident
from bench.accuracy.judging import Judged
from bench.accuracy.pages import Figure, Section, Table
from bench.accuracy.scores import Pair, Score, by, confusions, interval, pair_up, score

AIMS = (
    ("first cause right, recording + source", 0.90),
    ("among the first three, recording + source", 0.97),
    ("first cause right, log alone, causes that a log can show", 0.75),
)
MOST_FALSE_ALARMS = 0.01
LARGEST_CALIBRATION_ERROR = 0.05


def share(hits: int, count: int) -> str:
    """Return a share with its counts and its 95 % interval."""
    if not count:
        return "–"
    low, high = interval(hits, count)
    return f"{hits / count:.1%} ({hits}/{count}; {low:.0%}–{high:.0%})"


def sections(
    incidents: Sequence[Incident], judged: Sequence[Judged], fixed: Sequence[Fixed] = ()
) -> list[Section]:
    """Return the report on one half."""
    pairs = {s: pair_up(incidents, judged, s) for s in SETS}
    whole = pairs[WHOLE]
    return [
        _corpus(incidents),
        headline(pairs, fixed),
        _by_artifacts(pairs),
        Section("By family of causes (recording + source)", (_table_of(_families(whole)),)),
        Section("By framework (recording + source)", (_frameworks(whole),)),
        _calibration(pairs),
        *([_fixes(fixed)] if fixed else []),
        Section("What is taken for what (recording + source)", (_confused(whole),)),
        Section("Missed, wrong and false (recording + source)", (_wrong(whole),)),
    ]


def _corpus(incidents: Sequence[Incident]) -> Section:
    healthy = sum(i.is_healthy for i in incidents)
    weak = sum(i.is_weak_fault for i in incidents)
    causes = len({i.cause for i in incidents if i.cause})
    programs = len({i.program for i in incidents})
    text = (
        f"{len(incidents)} incidents from {programs} programs: {len(incidents) - healthy} with a "
        f"fault that matters ({causes} causes), {healthy} healthy "
        f"({healthy / len(incidents):.0%}), {weak} of these with a "
        "fault that proved too weak to matter."
    )
    return Section("The incidents", (text,))


def headline(pairs: Mapping[str, Sequence[Pair]], fixed: Sequence[Fixed] = ()) -> Section:
    """Return the figures that the aims speak of."""
    whole = score(pairs[WHOLE])
    log = score(p for p in pairs["log"] if p.incident.is_shown_by_a_log)
    beliefs = calibration.answers(pairs[WHOLE])
    error = calibration.expected_error(beliefs)
    rows = [
        (AIMS[0][0], "≥ 90 %", share(whole.first, whole.faulty)),
        (AIMS[1][0], "≥ 97 %", share(whole.three, whole.faulty)),
        (AIMS[2][0], "≥ 75 %", share(log.first, log.faulty)),
        ("false alarms on healthy runs", "≤ 1 %", share(whole.false_alarms, whole.healthy)),
        ("expected calibration error of the answers", "≤ 0.05", f"{error:.3f}"),
        ("offered patch works when applied and rerun", "≥ 90 %", _working(fixed)),
        ("median time to diagnosis", "< 2 s", f"{whole.median_s:.2f} s"),
    ]
    return Section("Headline", (Table(("figure", "aim", "measured"), tuple(rows)),))


def _working(fixed: Sequence[Fixed]) -> str:
    told = [f.works for f in fixed if f.works is not None]
    return share(sum(told), len(told))


def _fixes(fixed: Sequence[Fixed]) -> Section:
    """Return what became of every patch that was offered for a faulty run."""
    said = {True: "works", False: "does not work", None: "cannot be told"}
    rows = tuple((f.incident, said[f.works], f.says) for f in fixed)
    text = (
        "The patch of the first root cause, right or not, applied to a copy and run again with "
        "the same seed; it works if the program then does as well as the healthy one."
    )
    return Section("Patches", (text, Table(("incident", "patch", "the patched program"), rows)))


def _by_artifacts(pairs: Mapping[str, Sequence[Pair]]) -> Section:
    return Section("By artifacts", (_table_of({s: score(p) for s, p in pairs.items() if p}),))


def _table_of(groups: Mapping[str, Score]) -> Table:
    head = (
        "", "first right", "in three", "listed first and right", "listed and wrong", "undecided",
        "overlooked", "line right", "false alarms", "median s",
    )  # fmt: skip
    rows = [
        (
            name,
            share(s.first, s.faulty),
            share(s.three, s.faulty),
            share(s.listed, s.faulty),
            str(s.wrong),
            str(s.abstained),
            str(s.overlooked),
            f"{s.located}/{s.with_line}",
            f"{s.false_alarms}/{s.healthy}",
            f"{s.median_s:.2f}",
        )
        for name, s in groups.items()
    ]
    return Table(head, tuple(rows))


def _families(pairs: Sequence[Pair]) -> dict[str, Score]:
    return {n: s for n, s in by(pairs, lambda p: p.incident.family).items() if n != HEALTHY}


def _frameworks(pairs: Sequence[Pair]) -> Table:
    return _table_of(by(pairs, lambda p: p.incident.framework))


def _calibration(pairs: Mapping[str, Sequence[Pair]]) -> Section:
    rows, parts = [], []
    kinds = {
        "answers (first root cause)": calibration.answers,
        "first hypothesis, listed or not": calibration.leading,
        "every hypothesis": calibration.considered,
    }
    for name, beliefs_of in kinds.items():
        for artifacts in (WHOLE, "log + source", "log"):
            beliefs = beliefs_of(pairs[artifacts])
            error, loss = calibration.expected_error(beliefs), calibration.brier(beliefs)
            rows.append((name, artifacts, str(len(beliefs)), f"{error:.3f}", f"{loss:.3f}"))
    for number, (name, beliefs_of) in enumerate(kinds.items()):
        groups = calibration.bins(beliefs_of(pairs[WHOLE]))
        says = f"Stated confidence against the share that was right: {name}, {WHOLE}"
        parts.append(Figure(f"reliability-{number}", figures.reliability(name, groups), says))
    head = ("beliefs", "artifacts", "count", "expected calibration error", "Brier score")
    return Section("Calibration", (Table(head, tuple(rows)), *parts))


def _confused(pairs: Sequence[Pair]) -> Table:
    counted = confusions(pairs)
    off = [(truth, said, n) for (truth, said), n in counted.most_common() if truth != said]
    rows = tuple((truth, said, str(n)) for truth, said, n in off)
    return Table(("truth", "answer", "count"), rows)


def _wrong(pairs: Sequence[Pair]) -> Table:
    rows = []
    for pair in pairs:
        truth, judged = pair.incident, pair.judged
        is_bad = pair.is_false_alarm if truth.is_healthy else not pair.is_first
        if is_bad:
            said = ", ".join(f"{n.cause} {n.confidence:.2f}" for n in judged.named[:3]) or "–"
            rows.append((truth.name, truth.cause or HEALTHY, judged.status, said))
    return Table(("incident", "truth", "status", "first three"), tuple(rows))
