"""Run every benchmark, and write one report of what they print.

python -m bench [--only NAME]…

The corpus of incidents is generated first where it is not there yet, which takes hours; what was
run before is not run again. The report goes to bench/cache/report, as Markdown and as HTML.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import bench
from bench.accuracy.__main__ import circumstances, write
from bench.accuracy.pages import Section, Table

# what others read from has to be there before them
FIRST = ("corpus", "peers", "accuracy", "experiments")
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
    options = parser.parse_args(arguments)
    worst, sections = 0, []
    for name in options.only or names():
        is_package = (Path(bench.__path__[0]) / name).is_dir()
        module = _module(name, is_package=is_package)
        title = name.replace("_", " ")
        print(f"\n## {title}\n", flush=True)
        sys.argv = [f"bench.{name}"]
        with contextlib.redirect_stdout(Echo()) as printed:
            worst = max(worst, module.main())  # type: ignore[attr-defined]
        sections.append(Section(title, tuple(parts(printed.getvalue()))))
    write("bench", f"Benchmarks of traindx ({circumstances()})", sections)
    return worst


def parts(text: str) -> Iterator[str | Table]:
    """Return what was printed as paragraphs and tables."""
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if line.strip()]
        if len(lines) > 1 and all(line.startswith("|") for line in lines):
            rows = [tuple(c.strip() for c in line.strip("|").split("|")) for line in lines]
            yield Table(rows[0], tuple(r for r in rows[2:] if len(r) == len(rows[0])))
        elif lines:
            yield "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
