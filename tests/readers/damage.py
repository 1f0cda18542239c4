"""What every reader has to survive: cut files, flipped bytes, inserted noise, and pure noise."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from traindx.errors import TraindxError
from traindx.model.run import Run

Read = Callable[[Path], Run]

few = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """Return a valid file with a cut, a changed stretch or an insertion."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(["cut", "change", "insert", "drop"]))
        noise = draw(st.binary(min_size=1, max_size=12))
        if kind == "cut":
            del data[at:]
        elif kind == "change":
            data[at : at + len(noise)] = noise
        elif kind == "insert":
            data[at:at] = noise
        else:
            del data[at : at + draw(st.integers(1, 400))]
    return bytes(data)


def survive(read: Read, data: bytes, name: str) -> Run | None:
    """Read a file of that content; a refusal is fine, a crash is not."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        with contextlib.suppress(TraindxError):
            return read(path)
    return None
