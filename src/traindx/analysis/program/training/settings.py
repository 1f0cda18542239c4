"""Settings from the command line: what a value is where nobody gives another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Known,
    Part,
    Result,
    Value,
    constant,
    options_of,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PARSES = (".parse_args", ".parse_known_args")


def constants_of(story: Story, value: Value | None) -> list[object]:
    """Return the constants that a value may be: its own, or the defaults of its setting."""
    if value is None:
        return []
    found: list[object] = []
    for option in options_of(value):
        held = default_of(story, option) or option
        found += [o.value for o in options_of(held) if isinstance(o, Known)]
    return found


def default_of(story: Story, value: Value) -> Value | None:
    """Return the default of what the command line sets: `args.lr` of `add_argument("--lr")`."""
    if not isinstance(value, Part) or not isinstance(value.of, Result):
        return None
    if value.of.maker not in PARSES:
        return None
    for event in story.events:
        if event.name == ".add_argument" and value.key in _destinations(event.args, event.kwargs):
            return event.kwargs.get("default")
    return None


def _destinations(flags: tuple[Value, ...], given: object) -> set[str]:
    named = constant(given.get("dest")) if isinstance(given, dict) else None
    if isinstance(named, str):
        return {named}
    texts = [t for f in flags if isinstance(t := constant(f), str)]
    return {t.lstrip("-").replace("-", "_") for t in texts}
