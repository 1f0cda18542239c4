"""How many programs of strangers `traindx run` names the cause of, riding along.

    python -m bench.strangers.live [SET[/HAND] …] [--keep DIR]

Each program runs on a copy, under the recorder, with its source beside it. With `--keep`, the
recordings stay there and are judged again without a run of the programs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from bench.strangers.__main__ import HOME
from traindx.api import diagnose_run

SECONDS = 240  # for one program on a shared machine
RANKS = ("init_process_group", "DistributedSampler", "torchrun")


def main() -> int:
    """Print one line per set, and with --verbose one per program."""
    parser = argparse.ArgumentParser(prog="python -m bench.strangers.live")
    parser.add_argument("sets", nargs="*", default=["studied"])
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="strangers-"))
    for name in options.sets:
        counts: Counter[str] = Counter()
        for label in sorted((HOME / name).rglob("label.json")):
            folder = keep / label.parent.relative_to(HOME)
            said = json.loads(label.read_text(encoding="utf-8"))
            causes = causes_of(label.parent, folder)
            verdict = _verdict(said, causes)
            counts[verdict] += 1
            if options.verbose:
                shown = ", ".join(causes[:3]) or "nothing"
                print(f"  {verdict}: {label.parent.name}: {said['cause']}: {shown}", flush=True)
        faulty = counts["right"] + counts["other"] + counts["silent"]
        sound = counts["alarm"] + counts["sound"]
        right = f"first cause right {counts['right']}/{faulty}"
        print(f"{name}: {right}, false alarms {counts['alarm']}/{sound}", flush=True)
    if options.keep is None:
        shutil.rmtree(keep, ignore_errors=True)
    return 0


def causes_of(program: Path, folder: Path) -> list[str]:
    """Return the root causes that a recorded run of a program shows; recorded once."""
    recording = folder / "recording"
    if not (recording / "run.json").exists():
        _record(program, folder, recording)
    if not (recording / "run.json").exists():
        return []
    return [h.cause for h in diagnose_run(recording)[1].root_causes]


def _record(program: Path, folder: Path, recording: Path) -> None:
    copy = folder / "program"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(program, copy, ignore=shutil.ignore_patterns("label.json"))
    entry = entry_of(copy)
    command = [sys.executable, entry]
    text = "".join(p.read_text(encoding="utf-8") for p in copy.rglob("*.py"))
    if any(word in text for word in RANKS):
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", entry]
    recorder = [sys.executable, "-m", "traindx", "run", "--quiet", "--max-time", "20"]
    with open(os.devnull, "wb") as nowhere:
        subprocess.run(
            ["timeout", "-s", "INT", "-k", "20", str(SECONDS), *recorder, "--output",
             str(recording), "--", *command],
            cwd=copy, stdout=nowhere, stderr=nowhere, check=False,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip


def entry_of(folder: Path) -> str:
    """Return the file that a user would start: the one with a main guard, or the longest script."""
    files = sorted(folder.glob("*.py"))
    texts = {f: f.read_text(encoding="utf-8") for f in files}
    guarded = [f for f in files if "__main__" in texts[f]]
    names = {f.stem for f in files}
    imported = {n for n in names for t in texts.values() if f"import {n}" in t or f"from {n}" in t}
    free = [f for f in (guarded or files) if f.stem not in imported] or guarded or files
    return max(free, key=lambda f: len(texts[f])).name


def _verdict(said: dict[str, object], causes: list[str]) -> str:
    if said["cause"] is None:
        return "alarm" if causes else "sound"
    accepted = said.get("accepted")
    wanted = {said["cause"], *(accepted if isinstance(accepted, list) else ())}
    if not causes:
        return "silent"
    return "right" if causes[0] in wanted else "other"


if __name__ == "__main__":
    sys.exit(main())
