"""The whole exception tree.

TraindxError
├── UsageError            the call makes no sense as given
│   └── UnknownName       no detector, cause or specialist of that name
├── UnreadableArtifact    an input that yields nothing at all
├── NotStarted            a command that could not be started at all
├── CannotRerun           a command that cannot be run again on a copy
│   └── PatchFailed       a diff that does not fit the source
└── MissingExtra          a format or output whose library is not installed
"""

from __future__ import annotations


class TraindxError(Exception):
    """Something the user can act on; the message says what, where, and what to try."""


class UsageError(TraindxError):
    """The call makes no sense as given."""


class UnknownName(UsageError):
    """No detector, cause or specialist has that name."""


class UnreadableArtifact(TraindxError):
    """An input that yields nothing at all."""

    def __init__(self, path: str, why: str, try_this: str, place: str = "") -> None:
        where = f"{path}, {place}" if place else path
        super().__init__(f"{where}: {why}. Try: {try_this}.")
        self.path = path
        self.place = place
        self.why = why
        self.try_this = try_this


class NotStarted(TraindxError):
    """A command that could not be started, and the exit code that shells have for it."""

    def __init__(self, exit_code: int, why: str) -> None:
        super().__init__(why)
        self.exit_code = exit_code
        self.why = why


class CannotRerun(TraindxError):
    """A command that cannot be run again on a copy of its project."""


class PatchFailed(CannotRerun):
    """A diff that does not fit the source."""


class MissingExtra(TraindxError):
    """A format or output whose library is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'traindx[{extra}]'")
        self.extra = extra
