"""What the command line can do, Python can do with one call."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from traindx import api
from traindx.errors import NotStarted, UnknownName, UsageError
from traindx.examples import decay
from traindx.readers.deadline import Deadline

DIVERGING = np.concatenate([decay(100), 0.4 * np.exp(np.arange(40) / 6.0)])
QUIET = api.Surface(is_quiet=True)


def printing(code: int = 0) -> list[str]:
    lines = "".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(DIVERGING))
    return [sys.executable, "-c", f"import sys; print({lines!r}); sys.exit({code})"]


def test_run_returns_how_the_command_ended_and_why(tmp_path: Path) -> None:
    result = api.run(printing(3), output=tmp_path / "out", surface=QUIET)
    assert result.exit_code == 3
    assert result.folder == tmp_path / "out" and (tmp_path / "out" / "output.log").is_file()
    assert result.run is not None and result.diagnosis is not None
    assert result.diagnosis.root_causes[0].cause == "lr-too-high"


def test_a_command_may_be_written_as_in_a_shell(tmp_path: Path) -> None:
    assert api.run("sh -c 'exit 4'", output=tmp_path, surface=QUIET).exit_code == 4


def test_a_report_that_fails_does_not_change_the_result(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(result: api.RunResult) -> None:
        raise ZeroDivisionError("in the report")

    surface = api.Surface(is_quiet=True, report=fail)
    result = api.run(printing(), output=tmp_path, surface=surface)
    assert result.exit_code == 0 and result.diagnosis is not None
    assert "the diagnosis failed: ZeroDivisionError: in the report" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("command", "error"),
    [((), UsageError), (("/no/such/program",), NotStarted)],
)
def test_what_cannot_be_run(command: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        api.run(command, surface=QUIET)


def test_a_cause_that_nobody_knows_is_refused_before_the_training(tmp_path: Path) -> None:
    request = api.VerifyRequest(causes=("lr-to-high",))
    with pytest.raises(UnknownName, match="lr-too-high"):
        api.run(printing(), output=tmp_path, verification=request, surface=QUIET)
    assert not list(tmp_path.iterdir())


def test_diagnose_run_counts_reading_and_judging_together(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(DIVERGING)))
    told: list[str] = []
    started = time.monotonic()
    run, diagnosis = api.diagnose_run(log, tell=told.append)
    assert told == [str(log), ""] and run.series
    assert 0.0 < diagnosis.duration_s <= time.monotonic() - started


def test_a_scan_ranks_the_runs_below_a_folder(tmp_path: Path) -> None:
    for name, values in (("good", decay(120)), ("bad", DIVERGING)):
        (tmp_path / name).mkdir()
        lines = "".join(f"step {i} loss: {v:.5f}\n" for i, v in enumerate(values))
        (tmp_path / name / "train.log").write_text(lines)
    found = api.scan(tmp_path, workers=1)
    assert [Path(row.path).name for row in found.ranked] == ["bad", "good"]


def test_a_deadline_knows_what_is_spent_and_what_is_left() -> None:
    limit = Deadline.after(60.0)
    assert 59.0 < limit.left_s <= 60.0
    assert 0.0 <= limit.spent_s < 1.0
    assert Deadline.after(-1.0).left_s < 0
