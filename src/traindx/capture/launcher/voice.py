"""What traindx itself says while the command has the floor: whole lines on standard error."""

from __future__ import annotations

import os
import sys
from threading import RLock

STDERR = 2


class Voice:
    """Writes lines to standard error that never land in the middle of a line of the command.

    The relays hold `floor` while they write to the same place, and set `is_mid_line`.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self.floor = RLock()
        self.is_mid_line = False

    def remark(self, text: str) -> None:
        """Say something that a quiet user does without."""
        if not self.is_quiet:
            self.say(text)

    def say(self, text: str) -> None:
        """Say something in one line."""
        line = f"traindx: {' '.join(_printable(text).split())}\n"
        with self.floor:
            start = "\n" if self.is_mid_line else ""
            self.is_mid_line = False
            encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
            write_all(STDERR, f"{start}{line}".encode(encoding, "replace"))


def write_all(file: int, data: bytes) -> OSError | None:
    """Write all of it, as long as it takes; return what made it impossible."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:  # somebody else who shares the file made it so
            from select import select

            select([], [file], [], 1.0)
        except OSError as error:
            return error
    return None


def _printable(text: str) -> str:
    """Names and messages of others may hold what would act on a terminal."""
    return "".join(c if c.isprintable() or c.isspace() else "?" for c in text)
