"""Forks of one warm interpreter: each is what a process started afresh would be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from traindx.experiments.sandbox.fork_server import ForkServer, is_possible, script_of

pytestmark = pytest.mark.skipif(not is_possible(), reason="needs fork and descriptors")

SCRIPT = """
import os, sys
print(sys.argv[1], os.environ["ASKED"], os.getcwd(), __name__, __file__)
sys.exit(3)
"""


def test_a_fork_has_its_own_arguments_environment_folder_and_exit_code(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    script = folder / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    environ = {**os.environ, "ASKED": "yes"}
    server = ForkServer(sys.executable, os.environ, folder)
    try:
        process = server.start([str(script), "--lr"], folder, environ)
        assert process is not None
        assert process.stdout is not None
        with process.stdout as printed:
            said = printed.read().decode().split()
        assert said == ["--lr", "yes", str(folder), "__main__", str(script)]
        assert process.wait(30.0) == 3
        assert server.start([str(script)], folder, {**environ, "LONG": "x" * (1 << 17)}) is None
    finally:
        server.close()


def test_only_a_plain_script_is_forked() -> None:
    assert script_of(["python3", "train.py", "--lr", "1"]) == ["train.py", "--lr", "1"]
    assert script_of(["torchrun", "train.py"]) is None
    assert script_of(["python", "-m", "train"]) is None
