"""Accuracy and calibration on the corpus of incidents.

python -m bench.accuracy [--half report] [--sets "log,recording + source"] [--kept] [--no-fixes]

`python -m bench.corpus` makes the incidents. The report half is for reporting: rules are changed
and weights are fitted with the develop half in view.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.accuracy import fixing, judging, pages, report
from bench.accuracy.incidents import HALVES, SETS, WHOLE, incidents
from bench.peers import page

FOLDER = Path(__file__).parent.parent / "cache" / "report"


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge one half, write the report, print its headline."""
    options = _options(arguments)
    found = list(incidents(options.half))
    if not found:
        print(f"no incidents yet. Try: python -m bench.corpus --half {options.half}")
        return 0
    if options.only:
        found = [i for i in found if options.only in i.name]
    sets = options.sets.split(",") if options.sets else SETS
    if options.kept:
        judged = judging.read_kept(options.half)
    else:
        judged = judging.keep(judging.judge_all(found, sets, options.jobs), options.half)
        fixing.keep(fixing.try_all(options.half, WHOLE) if options.fixes else (), options.half)
    peers = page.read(options.half)
    beside = [page.section(options.half)] if peers else []
    own = report.sections(found, judged, fixing.read_kept(options.half))
    made = [*(pages.named_apart(section, options.half) for section in own), *beside]
    write(f"accuracy-{options.half}", f"Accuracy on the {options.half} half", made)
    print(pages.to_markdown(f"Accuracy on the {options.half} half ({circumstances()})", made))
    return 0


def write(name: str, title: str, made: Sequence[pages.Section]) -> None:
    """Write a report as Markdown and HTML, figures beside it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    title = f"{title} ({circumstances()})"
    (FOLDER / f"{name}.md").write_text(pages.to_markdown(title, made), encoding="utf-8")
    (FOLDER / f"{name}.html").write_text(pages.to_html(title, made), encoding="utf-8")
    for section in made:
        for part in section.parts:
            if isinstance(part, pages.Figure):
                (FOLDER / f"{part.name}.svg").write_text(part.svg, encoding="utf-8")


def circumstances() -> str:
    """Return when, on what and of which commit a report was made."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    commit = done.stdout.strip() or "no commit"
    return f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, CPU, commit {commit}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.accuracy", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--sets", help=f"of {', '.join(SETS)}")
    parser.add_argument("--only", help="incidents whose name holds this text")
    parser.add_argument("--kept", action="store_true", help="score the judgements of last time")
    parser.add_argument("--fixes", action=argparse.BooleanOptionalAction, default=True,
                        help="apply the patches that are offered, and run again")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
