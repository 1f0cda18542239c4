"""Rewrite the artifacts of every incident, or of those named: make_all.py [NAME ...].

A program's file name is its incident's name with underscores; its `make` writes the artifacts.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import time
from pathlib import Path

PROGRAMS = Path(__file__).parent
NOT_INCIDENTS = {"make_all", "training"}


def main(names: list[str]) -> None:
    """Make the named incidents, or all."""
    every = sorted(p.stem for p in PROGRAMS.glob("*.py") if p.stem not in NOT_INCIDENTS)
    for name in [n.replace("-", "_") for n in names] or every:
        started = time.monotonic()
        artifacts = PROGRAMS.parent / name.replace("_", "-") / "artifacts"
        shutil.rmtree(artifacts, ignore_errors=True)
        artifacts.mkdir(parents=True)
        importlib.import_module(name).make(artifacts)
        size = sum(p.stat().st_size for p in artifacts.rglob("*") if p.is_file())
        print(f"{name:40} {size / 1024:7.1f} KB {time.monotonic() - started:6.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
