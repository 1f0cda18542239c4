"""What a run is known to have passed, and that nothing else takes a claim about its source back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traindx.analysis.errors.passed_lines import has_passed
from traindx.diagnosis.engine import diagnose
from traindx.examples import IMPORTS, decay, failed, make_run, with_source
from traindx.model.findings import Diagnosis, Status
from traindx.model.recording import Counts, Ending, Place, Process, Recording, Sample
from traindx.model.run import Run

PROGRAM = (
    IMPORTS
    + """
model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
names = open("names.txt").read()
for step in range(100):
    x, y = torch.randn(32, 784), torch.randint(0, 10, (32,))
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(open("summary.txt").read())
"""
)
SOURCES = {"train.py": PROGRAM}
LINES = {text.strip(): n for n, text in enumerate(PROGRAM.split("\n"), 1)}
FORWARD = ("train.py", LINES["out = model(x)"])


def line_of(code: str) -> int:
    return LINES[code]


def recorded_at(code: str, **ending: int) -> Run:
    """Return a run of the program whose recorder saw a step, its backward pass at this line."""
    place = Place("/home/me/train.py", line_of(code), "<module>", code)
    process = Process(
        path="rank0.jsonl", samples=(Sample(5, place=place),), counts=Counts(9, steps=1)
    )
    recording = Recording((process,), Ending(**ending) if ending else None)  # type: ignore[arg-type]
    return replace(make_run(sources=SOURCES), recording=recording)


def mismatch(diagnosis: Diagnosis) -> float:
    return {h.cause: h.confidence for h in diagnosis.hypotheses}.get("shape-mismatch", 0.0)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (make_run(sources=SOURCES), False),
        (failed("FileNotFoundError: names.txt", 'names = open("names.txt")', sources=SOURCES), False),
        (failed("FileNotFoundError: x", 'print(open("summary.txt")', sources=SOURCES), True),
        (failed("RuntimeError: CUDA error", "loss.backward()", sources=SOURCES), True),
        (failed("KeyError: 'x'", "y = batch['x']"), False),
        (recorded_at("loss.backward()"), True),
        (recorded_at('names = open("names.txt").read()'), False),
        (recorded_at('names = open("names.txt").read()', exit_code=0), True),
    ],
    ids=[
        "source alone", "failed before it", "failed after it", "failed in backward",
        "failed elsewhere", "backward ran", "only what is before it ran", "it ended well",
    ],
)  # fmt: skip
def test_a_line_is_passed_by_what_came_after_it(run: Run, expected: bool) -> None:
    assert has_passed(with_source(run, PROGRAM), FORWARD) is expected


def test_an_error_that_comes_first_leaves_what_the_source_shows() -> None:
    alone = diagnose(make_run(sources=SOURCES))
    assert mismatch(alone) > 0.9
    code = 'names = open("names.txt")'
    beside = diagnose(failed("FileNotFoundError: names.txt", code, sources=SOURCES))
    assert mismatch(beside) == mismatch(alone)


def test_a_loss_that_falls_speaks_against_it_and_both_are_said() -> None:
    diagnosis = diagnose(make_run({"loss/train": decay(100)}, sources=SOURCES))
    assert diagnosis.root_causes == ()
    assert diagnosis.status is Status.INSUFFICIENT
    doubted = next(h for h in diagnosis.hypotheses if h.cause == "shape-mismatch")
    assert 0.05 < doubted.confidence < 0.7
    assert doubted.findings
    assert "loss" in doubted.counter_evidence[0].says


def test_a_line_that_ran_is_not_accused() -> None:
    assert mismatch(diagnose(recorded_at("loss.backward()"))) == 0.0
