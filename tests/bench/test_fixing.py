"""Whether a patch works is told by the program that it was applied to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bench.accuracy.fixing import apply, judge
from bench.corpus.program import Program
from bench.corpus.runs import Ran
from bench.corpus.truth import Health

PROGRAM = Program(
    "develop", "p", "mlp", "plain", ("python", "train.py"), 1,
    re.compile(r"accuracy (\S+)"), None, True, {"train.py": "a = 1\nb = 2\n"},
)  # fmt: skip
HEALTHY = Health((0.90, 0.91, 0.92), is_higher_better=True)
PATCH = """--- a/somewhere/else/train.py
+++ b/somewhere/else/train.py
@@ -1,2 +1,2 @@
 a = 1
-b = 2
+b = 3
"""


def ran(folder: Path, log: str, code: int | None = 0) -> Ran:
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    (made / "log.txt").write_text(log)
    (made / "ran.json").write_text(json.dumps({"code": code}))
    return Ran(code, 1.0, made)


def test_a_patch_is_applied_wherever_the_program_stood() -> None:
    assert apply(PATCH, PROGRAM.files) == {"train.py": "a = 1\nb = 3\n"}


def test_a_patch_of_another_text_is_refused() -> None:
    with pytest.raises(ValueError, match="patch"):
        apply(PATCH, {"train.py": "something = 'else'\n"})


@pytest.mark.parametrize(
    ("mended", "broken", "works"),
    [
        ("accuracy 0.91", "accuracy 0.10", True),
        ("accuracy 0.50", "accuracy 0.10", False),
        ("accuracy nan", "accuracy 0.10", False),
        ("", "accuracy 0.10", False),
        ("accuracy 0.91 as ever", "accuracy 0.91 slow", True),
        ("accuracy 0.92", "accuracy 0.91 slow", None),
    ],
)
def test_it_works_if_the_outcome_is_that_of_the_healthy(
    tmp_path: Path, mended: str, broken: str, works: bool | None
) -> None:
    runs = [ran(tmp_path, log) for log in (mended, broken, "accuracy 0.91 as ever")]
    assert judge(PROGRAM, HEALTHY, *runs)[0] is works


def test_a_patched_program_that_crashes_does_not_work(tmp_path: Path) -> None:
    runs = [ran(tmp_path, "accuracy 0.91", 1), ran(tmp_path, "", 1), ran(tmp_path, "accuracy 0.91")]
    assert judge(PROGRAM, HEALTHY, *runs) == (False, "ends with exit code 1")


def test_a_crash_that_is_gone_counts(tmp_path: Path) -> None:
    runs = [ran(tmp_path, "accuracy 0.91"), ran(tmp_path, "", 1), ran(tmp_path, "accuracy 0.91")]
    assert judge(PROGRAM, HEALTHY, *runs)[0] is True
