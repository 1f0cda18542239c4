"""A recorded training prints the very same numbers, digit by digit, and ends in the same way."""

from __future__ import annotations

from pathlib import Path

from bench.programs import Case, last_counts, record, run
from forking import differences, fork_each

HEALTHY = (
    "plain_loop.py",  # batch normalisation, dropout, validation
    "saving_models.py",  # whole models, to the byte
    "accumulation.py",
    "gan.py",  # two optimizers
    "lbfgs.py",  # a closure
    "language_model.py",  # no loader, dropout, validation in between
    "checkpointing.py:reentrant",  # backward passes inside a backward pass
    "checkpointing.py",  # a forward pass again, with the random state of the first
    "mixed_precision.py",
    "maml.py",  # gradients of gradients
    "sam.py",  # two passes for one step
    "distillation.py",  # one model after the other
)
ENDING_BADLY = ("bad_token.py", "log_of_zero.py")  # an exception, a replayed step


def broken_off(recorded: Path) -> list[str]:
    ends = [(folder.name, *last_counts(folder)) for folder in sorted(recorded.iterdir())]
    return [n for n, end in ends if end.get("why_off") != "" or not end["is_end"]]


def test_programs_print_the_same_with_and_without_the_recorder(tmp_path: Path) -> None:
    plain, recorded = tmp_path / "plain", tmp_path / "recorded"
    fork_each(plain, [*HEALTHY, *ENDING_BADLY], is_recorded=False)
    fork_each(recorded, [*HEALTHY, *ENDING_BADLY])
    assert differences(plain, recorded) == []
    assert broken_off(recorded) == []
    assert len(list(plain.iterdir())) == len(HEALTHY) + len(ENDING_BADLY)


def assert_same(tmp_path: Path, case: Case, processes: int = 1) -> None:
    plain, recorded = run(case), record(case, tmp_path / "recording")
    assert plain.exit_code == 0, plain.errors
    assert (recorded.exit_code, recorded.output) == (0, plain.output), recorded.errors
    ends = last_counts(tmp_path / "recording")
    assert [(e.get("why_off"), e.get("is_end")) for e in ends] == [("", True)] * processes


def test_two_data_parallel_ranks_print_the_same(tmp_path: Path) -> None:
    assert_same(tmp_path, Case("ddp.py", launcher="torchrun"), processes=2)


def test_workers_are_not_recorded_and_print_the_same(tmp_path: Path) -> None:
    assert_same(tmp_path, Case("workers.py", ("fork",)))
