"""Runs a training program with interventions in it, as a rerun does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx.capture.launcher.launch import INJECTED
from traindx.experiments.sandbox.rerun_environment import INTERVENTIONS_HOME


@dataclass(frozen=True)
class Outcome:
    code: int
    output: str
    errors: str
    folder: Path

    @property
    def told(self) -> dict[str, Any]:
        """What the program printed as its last line, in JSON."""
        return json.loads(self.output.strip().splitlines()[-1])

    @property
    def reports(self) -> dict[str, dict[str, Any]]:
        """The reports of the interventions, of all processes together."""
        merged: dict[str, dict[str, Any]] = {}
        for path in sorted(self.folder.glob("interventions-*.json")):
            for name, report in json.loads(path.read_text()).items():
                found = merged.setdefault(name, {"applied": 0, "notes": [], "failed": ""})
                found["applied"] += report["applied"]
                found["notes"] += report["notes"]
                found["failed"] = found["failed"] or report.get("failed", "")
        return merged

    def applied(self, name: str) -> int:
        report = self.reports[name]
        assert not report["failed"], report
        return int(report["applied"])


def change(
    folder: Path,
    program: str,
    asked: Sequence[tuple[str, Mapping[str, Any]]] = (),
    *,
    launcher: Sequence[str] = (),
    records: bool = True,
) -> Outcome:
    """Run a program with interventions; they are reported into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TRAINDX_")}
    recording = folder / "recording"
    if records:
        environ["TRAINDX_RECORDING"] = str(recording)
    spec = [{"name": name, "values": dict(values)} for name, values in asked]
    environ |= {
        "TRAINDX_INTERVENTIONS": json.dumps(spec),
        "TRAINDX_INTERVENTIONS_HOME": str(INTERVENTIONS_HOME),
        "TRAINDX_OVERHEAD": "1",
        "PYTHONPATH": str(INJECTED),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [sys.executable, *launcher, str(script)],
        capture_output=True,
        text=True,
        env=environ,
        cwd=folder,
        timeout=300,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, recording)
