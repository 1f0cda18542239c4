"""Clipping of gradients that were used already."""

from __future__ import annotations

from dataclasses import replace

from traindx.analysis.recordings.late_clipping import late_clips
from traindx.examples import watched, weights
from traindx.model.recording import Place, Process


def process(*late: bool, optimizers: int = 1) -> Process:
    made = watched(*weights("0.weight"), count=len(late))
    samples = tuple(
        replace(s, late_clip=Place("a.py", 3) if is_late else None, optimizer=i % optimizers)
        for i, (s, is_late) in enumerate(zip(made.samples, late, strict=True))
    )
    return replace(made, samples=samples)


def test_nearly_all_are_late() -> None:
    assert len(late_clips(process(*[True] * 6))) == 6
    assert len(late_clips(process(False, *[True] * 6))) == 6


def test_some_are_late_or_it_is_not_known_whose() -> None:
    assert not late_clips(process(True, True))
    assert not late_clips(process(*[True, False] * 4))
    assert not late_clips(process(*[True] * 6, optimizers=2))
