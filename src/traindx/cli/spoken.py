"""What a command says beside its result, in one line on standard error."""

from __future__ import annotations

import sys


def say(text: object) -> None:
    """Say one line; names of others in it cannot act on the terminal."""
    from traindx.report.words import clean

    print(f"traindx: {clean(text)}", file=sys.stderr, flush=True)
