"""Writes what follows from the code: the catalogue, the references, the report in the README.

Run `python docs/generate.py` to write them, `python docs/generate.py --check` to learn which are
stale.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby, product
from pathlib import Path

from rich.console import Console

from traindx import diagnose, open_run
from traindx.causes import Cause, families
from traindx.model.needs import need_of
from traindx.registry import Detector
from traindx.report import catalogue, reference
from traindx.report.terminal import print_report
from traindx.specialists.playbooks import playbooks
from traindx.specialists.plugin.plugin_files import checklist_page

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
NOTE = "<!-- Written by docs/generate.py; change the code, then run `make docs`. -->"

# what a user has, by the needs it meets; every other need is a metric
ARTIFACTS = {
    "metrics": "metrics",
    "events": "log lines",
    "failure": "traceback",
    "source": "source",
    "config": "config",
    "architecture": "checkpoint",
    "checkpoints": "two checkpoints",
    "samples": "outputs",
    "confusions": "confusion matrix",
}
DEMO_STARTS, DEMO_ENDS = "<!-- demo -->", "<!-- /demo -->"
ALONE, TOGETHER = "●", "○"


def pages() -> dict[str, str]:
    """Return every generated page by its file name."""
    return {
        "causes.md": causes_page(),
        "detectors.md": detectors_page(),
        "reach.md": reach_page(),
        "failure-modes.md": _joined([NOTE, reference.modes_page()]),
        "fix-templates.md": _joined([NOTE, reference.fixes_page()]),
        "checklist.md": _joined([NOTE, checklist_page(playbooks())]),
        "../README.md": readme(),
    }


def stale_pages() -> list[str]:
    """Return the names of the pages that are missing or do not say what the code says."""
    return [name for name, text in pages().items() if not _is_current(HERE / name, text)]


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def readme() -> str:
    """Return the README with the report of the demo as it is printed now."""
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(DEMO_STARTS)
    _, _, after = rest.partition(DEMO_ENDS)
    return f"{before}{DEMO_STARTS}\n```text\n{demo_report()}\n```\n{DEMO_ENDS}{after}"


def demo_report() -> str:
    """Return what `traindx demo --log` prints at 80 columns, up to the end of the first cause."""
    here = Path.cwd()
    os.chdir(README.parent)  # so that the paths in the report are those a reader would type
    try:
        run = open_run("src/traindx/demo/train.log", "src/traindx/demo/config.yaml")
    finally:
        os.chdir(here)
    out = io.StringIO()
    print_report(run, diagnose(run), Console(file=out, width=80))
    return out.getvalue().split("\nOpen hypotheses")[0].rstrip()


def causes_page() -> str:
    """Return the catalogue of causes."""
    count = sum(len(family.causes) for family in families())
    parts = [
        NOTE,
        "# Causes",
        f"The {count} states of the world that traindx can hold responsible for a failed run. The "
        "names are stable: they stand in JSON, in reports and in `traindx explain NAME`. Where a "
        'remedy here says "the learning rate", a diagnosis names the run\'s own key and value.',
        "\n".join(f"- [{f.name}](#{_anchor(f.name)}): {len(f.causes)}" for f in families()),
    ]
    for family in families():
        parts += [f"## {family.name}", family.what]
        parts += [catalogue.explain_cause(cause, level=3) for cause in family.causes]
    return _joined(parts)


def detectors_page() -> str:
    """Return the catalogue of detectors."""
    found = built_in()
    parts = [
        NOTE,
        "# Detectors",
        f"The {len(found)} rules that look at a run. A detector runs when the run has what it "
        "needs, and is listed as skipped otherwise. It reports what it sees; the diagnosis weighs "
        "that against everything else.",
    ]
    for name, members in groupby(found, key=lambda d: d.family):
        parts.append(f"## {name.replace('_', ' ')}")
        parts += [catalogue.explain_detector(d, level=3) for d in members]
    return _joined(parts)


def reach_page() -> str:
    """Return which artifact makes which cause reachable."""
    head = " | ".join(ARTIFACTS.values())
    parts = [
        NOTE,
        "# What can be found from what",
        f"{ALONE} this alone is enough for some detector that can suggest the cause; {TOGETHER} it "
        "helps together with another artifact. Metrics come from any log, tracker file or "
        "recording of `traindx run`. Suggesting is not proving: the confidence says how far the "
        "evidence goes.",
    ]
    for family in families():
        rows = [f"| `{c.name}` | {' | '.join(_marks(c))} |" for c in family.causes if _ways(c)]
        if rows:
            rule = "|---" * (len(ARTIFACTS) + 1) + "|"
            table = "\n".join([f"| cause | {head} |", rule, *rows])
            parts += [f"## {family.name}", table]
    parts += ["## Not reached yet", _unreached(), "## By need", _by_need()]
    return _joined(parts)


def built_in() -> list[Detector]:
    """Return this project's detectors: a plugin that happens to be installed is not documented."""
    return [
        d for d in catalogue.all_detectors() if d.check.__module__.startswith("traindx.detectors.")
    ]


def _ways(cause: Cause) -> set[frozenset[str]]:
    """The sets of artifacts from each of which some detector can suggest the cause."""
    suggesting = (d for d in built_in() if cause.name in d.suggests)
    return {way for d in suggesting for way in _artifact_sets(d)}


def _artifact_sets(detector: Detector) -> Iterator[frozenset[str]]:
    for choice in product(*(need.split("|") for need in detector.needs)):
        yield frozenset(_artifact(need) for need in choice)


def _artifact(need: str) -> str:
    """What a user has to give to meet a need; a checkpoint is a list of parameters too."""
    if need == "checkpoint":
        return "architecture"
    return need if need in ARTIFACTS else "metrics"


def _marks(cause: Cause) -> list[str]:
    ways = _ways(cause)
    return [
        ALONE if frozenset({a}) in ways else TOGETHER if any(a in w for w in ways) else " "
        for a in ARTIFACTS
    ]


def _unreached() -> str:
    reached = {name for d in built_in() for name in d.suggests}
    rows = []
    for family in families():
        missing = [c.name for c in family.causes if c.name not in reached]
        if missing:
            rows.append(f"- {family.name}: {catalogue.listed(missing)}")
    return "\n".join(rows) if rows else "Every cause has at least one detector that can suggest it."


def _by_need() -> str:
    reached: dict[str, set[str]] = {}
    for detector in built_in():
        for need in detector.needs:
            reached.setdefault(need_of(need).what, set()).update(detector.suggests)
    rows = [f"| {n} | {catalogue.listed(sorted(reached[n]))} |" for n in sorted(reached)]
    return "\n".join(["| need | helps to find |", "|---|---|", *rows])


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")


def _joined(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages, or with ``--check`` name the stale ones."""
    parser = argparse.ArgumentParser(description="Write the generated pages of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on stale pages")
    if parser.parse_args(arguments).check:
        stale = stale_pages()
        for name in stale:
            print(f"docs/{name} is stale. Try: make docs", file=sys.stderr)
        return 1 if stale else 0
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
