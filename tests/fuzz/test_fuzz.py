"""A short run of every reader's fuzz target; longer ones are run by hand."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from traindx.registry import readers

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has no build for this Python"
)


@pytest.mark.parametrize("name", [r.name for r in readers().items])
def test_a_reader_survives_what_a_fuzzer_finds(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, "-runs=400", "-max_len=4096", "-seed=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
