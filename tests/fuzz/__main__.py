"""A coverage-guided fuzz target per reader.

    python -m tests.fuzz console -runs=20000 -max_len=8192

The first word names the reader; the rest goes to libFuzzer. A reader may refuse what it is given
(`UnreadableArtifact`, `MissingExtra`); everything else that it raises is a finding, and so is an
input on which it takes longer than libFuzzer's -timeout or more memory than its -rss_limit_mb.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["traindx.readers", "traindx.tracebacks"]):
    from traindx.registry import readers

    FOUND = readers().items  # imported here, so that their branches are counted

import contextlib

from traindx.errors import TraindxError

BOUNDS = ("-timeout=30", "-rss_limit_mb=2048")


def main() -> None:
    name, *options = sys.argv[1:]
    reader = next(r for r in FOUND if r.name == name)
    folder = Path(tempfile.mkdtemp(prefix="traindx-fuzz-"))
    path = folder / "artifact"

    def target(data: bytes) -> None:
        path.write_bytes(data)
        score = reader.sniff(path, data[: 64 << 10])
        assert 0.0 <= score <= 1.0
        with contextlib.suppress(TraindxError):
            reader.read(path)

    corpus = folder / "corpus"
    corpus.mkdir()
    atheris.Setup([sys.argv[0], *BOUNDS, *options, str(corpus)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
