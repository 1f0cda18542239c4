"""Data blocks: how the text of artifacts is shown to a language model, as data and nothing else."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from traindx.report.words import clean, clean_block


def _fresh_mark() -> str:
    return f"data-{secrets.token_hex(6)}"


@dataclass(frozen=True, slots=True)
class Quoter:
    """Puts text between two marks that nobody who wrote an artifact can have known."""

    mark: str = field(default_factory=_fresh_mark)

    def block(self, title: str, text: str) -> str:
        """Return text as a data block; whatever stands in it cannot end the block."""
        body = clean_block(text).replace(self.mark, "data")
        label = clean(title, 200).replace(self.mark, "data").replace('"', "'")
        return f'<{self.mark} of="{label}">\n{body}\n</{self.mark}>'
