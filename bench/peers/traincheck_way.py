"""TrainCheck: its four steps up to the target run, with invariants of a short reference run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("traincheck_script.py")
REFERENCE_STEPS = "20"


def _collect(folder: Path, arguments: list[str], more: list[str]) -> None:
    command = [str(Path(sys.executable).with_name("traincheck-collect"))]
    script = folder.parent / SCRIPT.name  # what it makes of a script is written beside it
    shutil.copy(SCRIPT, script)
    command += ["--pyscript", str(script), "--models-to-track", "model"]
    command += ["--output-dir", str(folder), *more]
    environment = {
        **os.environ,
        "OVERHEAD_ARGUMENTS": " ".join(arguments),
        "OVERHEAD_ROOT": str(SCRIPT.parent.parent.parent),
    }
    subprocess.run(command, env=environment, cwd=folder.parent, check=True)


def main() -> None:
    """Collect a reference trace, infer invariants, and run the target with them."""
    folder = Path(os.environ["OVERHEAD_FOLDER"])
    arguments = sys.argv[1:]
    invariants = folder / "invariants.json"
    _collect(folder / "reference", [*arguments, "--steps", REFERENCE_STEPS], [])
    infer = str(Path(sys.executable).with_name("traincheck-infer"))
    subprocess.run(
        [infer, "-f", str(folder / "reference"), "-o", str(invariants)], cwd=folder, check=True
    )
    _collect(folder / "target", arguments, ["--invariants", str(invariants)])


if __name__ == "__main__":
    main()
