"""A diagnosis of a recording that still grows, made by a process of its own.

A detector that computes in this process would hold the interpreter, and with it the output of the
command. The process gives way to the training, and its crash or its memory are not ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Lock

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.model.findings import Diagnosis

LONGEST_S = 60.0
_HOME = Path(__file__).resolve().parents[3]
# a folder of the user may hold a json.py: the working folder is no place to import from
_START = """
import os, sys
os.nice(19)
sys.path = [path for path in sys.path if path] + [sys.argv[1]]
"""


class LiveDiagnosis:
    """Diagnoses a folder in another process; `stop` ends one that is under way.

    `program` is the Python that this process runs in the folder: it prints the diagnosis as JSON,
    and finds the seconds that it may take in `sys.argv[2]`.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._is_stopped = False

    def look(self, folder: Path) -> Diagnosis | None:
        """Return the diagnosis of what a recording holds so far, or nothing if there is none."""
        process = self._start(folder)
        if process is None:
            return None
        try:
            answer, _ = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        if process.returncode:
            return None
        from traindx.model.findings import Diagnosis

        try:
            return Diagnosis.from_dict(json.loads(answer))
        except (ValueError, KeyError, TypeError):
            return None

    def stop(self) -> None:
        """End a look that is under way, and begin no other."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _start(self, folder: Path) -> subprocess.Popen[bytes] | None:
        code = f"{_START}{self._program}"
        with self._lock:
            if self._is_stopped:
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-c", code, str(_HOME), f"{LONGEST_S / 2:g}"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # what the terminal sends is not meant for it
            )
            return self._process
