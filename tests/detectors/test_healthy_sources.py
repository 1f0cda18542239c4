"""Right programs, however unusual, are left alone."""

from __future__ import annotations

import pytest
from tests.detectors.healthy_programs import PROGRAMS

from traindx.diagnosis.engine import diagnose
from traindx.examples import make_run


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_cause_is_listed(name: str) -> None:
    diagnosis = diagnose(make_run(sources={"train.py": PROGRAMS[name]}))
    assert not diagnosis.failed
    assert [h.cause for h in diagnosis.root_causes] == []


def test_together_they_are_as_healthy_as_alone() -> None:
    sources = {f"program_{i}.py": text for i, text in enumerate(PROGRAMS.values())}
    assert [h.cause for h in diagnose(make_run(sources=sources)).root_causes] == []
