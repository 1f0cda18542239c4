"""What of a text is written down, and which markers it cannot hold."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.text_markers import missing_markers
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("text", "marker", "is_missing"),
    [
        ("f'### Q: {q} ### A: {a}'", "### A:", False),
        ("f'### Q: {q} ### A: {a}'", "### Answer:", True),
        ("'Q: {} ### A: {}'.format(q, a)", "### Answer:", True),
        ("'### Q:' + q + '### A:' + a", "### Answer:", True),
        ("q", "### Answer:", False),
        ("f'{q} of {a}'", "word", False),
    ],
)
def test_a_marker_in_a_text(text: str, marker: str, is_missing: bool) -> None:
    source = f"import torch\ntext = {text}\nat = text.find({marker!r})\n"
    story = program_of(make_run(sources={"train.py": source})).stories[0]
    assert bool(list(missing_markers(story.events))) is is_missing
