"""Whole runs with a known outcome; the healthy ones matter most."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.testing import Incident, examine, load_incidents

INCIDENTS = load_incidents(Path(__file__).parent / "incidents")


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda i: i.name)
def test_incident(incident: Incident) -> None:
    assert examine(incident) == []


def test_there_are_enough_healthy_ones() -> None:
    assert sum(i.is_healthy for i in INCIDENTS) >= 12
