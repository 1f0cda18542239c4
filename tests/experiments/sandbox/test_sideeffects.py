"""What cannot be ruled out is said before anything runs, and nothing else."""

from __future__ import annotations

from pathlib import Path

from traindx.experiments.sandbox.sideeffects import warnings

SCRIPT = '''
"""See /data/notes/about.txt."""
import requests, subprocess, wandb
from package.saving import save
OUT = "/scratch/results/run1"
subprocess.run(["ls"])
trainer = Trainer(push_to_hub=True)
'''


def test_each_kind_is_said_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "saving.py").write_text("import boto3\nBUCKET = 's3://bucket/x'\n")
    (tmp_path / "unused.py").write_text("import smtplib\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    said = warnings(["python", "train.py", "--out=/elsewhere/x"], tmp_path, [tmp_path])
    text = "\n".join(said)
    for part in (
        "requests (train.py line 3)", "boto3 (package/saving.py line 1)", "/scratch/results/run1",
        "s3://bucket/x", "subprocess.run (train.py line 6)", "push_to_hub=True", "/elsewhere/x",
    ):  # fmt: skip
        assert part in text, part
    for part in ("smtplib", "/data/notes", "wandb"):
        assert f"{part} " not in text, part
    assert len(said) == len(set(said)) == 6


def test_a_plain_script_has_nothing_to_be_warned_of(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, os\nprint('a/b', '/', '/usr/bin/env', os.path.join('x', 'y'))\n"
        f"open({str(tmp_path / 'x.txt')!r})\n"
    )
    assert warnings(["python", "train.py", "--lr", "0.1"], tmp_path, [tmp_path]) == ()


def test_source_that_does_not_parse_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def (\n")
    (said,) = warnings(["python", "train.py"], tmp_path, [tmp_path])
    assert "train.py" in said and "not checked" in said
