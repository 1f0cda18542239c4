"""Run every benchmark, and write one report of what they print.

python -m bench [--only NAME]… [--quick]

The corpus of incidents is generated first where it is not there yet, which takes hours; what was
run before is not run again. `--quick` takes the corpus as it is and fewer repeats: under an hour.
The report goes to bench/cache/report, as Markdown and as HTML, and is written anew after each
benchmark; one that fails is told there and does not stop the others.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import bench
from bench.accuracy.__main__ import FOLDER, write
from bench.accuracy.pages import Figure, Section, Table

# what others read from has to be there before them
FIRST = ("corpus", "peers", "accuracy", "experiments")
QUICK = {
    "corpus": ["--census"],
    "peers": ["--count", "10", "--jobs", "2"],
    "experiments": ["--seeds", "1", "--only", "seed"],
    "overhead": ["--quick"],
    "passing_cost": ["--blocks", "30"],
    "programs": ["--only", "plain"],
}
FIGURE = re.compile(r"!\[(.*)\]\((.+)\.svg\)")
ENTRY = "__main__"


class Echo(io.StringIO):
    """Keeps what is printed, and prints it."""

    def write(self, text: str) -> int:
        """Print and keep."""
        if sys.__stdout__ is not None:
            sys.__stdout__.write(text)
        return super().write(text)


def names() -> list[str]:
    """Return the benchmarks: the modules with a `main`, and the packages that can be run."""
    found = [
        info.name
        for info in pkgutil.iter_modules(bench.__path__)
        if info.name != ENTRY and hasattr(_module(info.name, is_package=info.ispkg), "main")
    ]
    return sorted(found, key=lambda n: (FIRST.index(n) if n in FIRST else len(FIRST), n))


def _module(name: str, *, is_package: bool) -> object:
    path = f"bench.{name}"
    if is_package and not (Path(bench.__path__[0]) / name / f"{ENTRY}.py").exists():
        return None
    return importlib.import_module(f"{path}.{ENTRY}" if is_package else path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks one after the other and return the worst of their exit codes."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="the corpus as it is, few repeats")
    options = parser.parse_args(arguments)
    worst, sections = 0, []
    for name in options.only or names():
        title = name.replace("_", " ")
        print(f"\n## {title}\n", flush=True)
        code, printed = _run(name, QUICK.get(name, []) if options.quick else [])
        worst = max(worst, code)
        sections.append(Section(title, tuple(parts(printed))))
        write("bench", "Benchmarks of traindx", sections)
    return worst


def _run(name: str, arguments: Sequence[str]) -> tuple[int, str]:
    """Run one benchmark; return its exit code and what it printed."""
    module = _module(name, is_package=(Path(bench.__path__[0]) / name).is_dir())
    sys.argv = [f"bench.{name}", *arguments]
    with contextlib.redirect_stdout(Echo()) as printed:
        try:
            code: int = module.main()  # type: ignore[attr-defined]
        except Exception as error:  # hours of others' figures are not to be lost
            traceback.print_exc()
            print(f"\n\nIt failed: {type(error).__name__}: {error}")
            code = 1
    return code, printed.getvalue()


def parts(text: str) -> Iterator[str | Table | Figure]:
    """Return what was printed as paragraphs, tables and figures."""
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if line.strip()]
        if len(lines) > 1 and all(line.startswith("|") for line in lines):
            rows = [tuple(c.strip() for c in line.strip("|").split("|")) for line in lines]
            yield Table(rows[0], tuple(r for r in rows[2:] if len(r) == len(rows[0])))
        elif shown := FIGURE.fullmatch(block.strip()):
            drawing = FOLDER / f"{shown[2]}.svg"
            if drawing.exists():
                yield Figure(shown[2], drawing.read_text(encoding="utf-8"), shown[1])
        elif lines:
            yield "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
