"""What depends on how Python hashes texts, which is another way in every process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import Items, Known, Result, Value, origins

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SETS = frozenset({"builtins.set", "builtins.frozenset"})
LISTS = frozenset({"builtins.list", "builtins.tuple", "builtins.enumerate", "builtins.iter"})
OF_SETS = frozenset({".union", ".intersection", ".difference", "operator.or"})
TEXTS = frozenset(
    {".split", ".lower", ".strip", ".join", ".read", ".readlines", ".replace", ".upper",
     ".rstrip", ".splitlines", ".findall", "re.findall", "builtins.str", ".read_text", ".tokenize"}
)  # fmt: skip


def hash_ordered(story: Story) -> Iterator[tuple[ProgramEvent | LoopRun, Value]]:
    """Yield where texts get numbers in the order of a set, and the set."""
    for loop in story.loops:
        found = _set_in_order(loop.over)
        if found is not None and _is_of_texts(story, found) and _counts(story, loop):
            yield loop, found
    for event in story.events:
        given = event.args[0] if event.name == "builtins.enumerate" and event.args else None
        found = _set_in_order(event.receiver if event.name == ".index" else given)
        if found is not None and _is_of_texts(story, found):
            yield event, found


def hashed_texts(story: Story) -> Iterator[ProgramEvent]:
    """Yield the calls of `hash` on texts."""
    for event in story.events:
        if event.name == "builtins.hash" and event.args and _is_text(event.args[0]):
            yield event


def _set_in_order(value: Value | None) -> Value | None:
    """Return the set that a list or a loop takes its order from; sorted, it gives none."""
    for _ in range(6):
        if isinstance(value, Items):
            return value if value.kind == "set" else None
        if not isinstance(value, Result):
            return None
        if value.maker in SETS or (value.maker in OF_SETS and _set_in_order(value.inputs[0])):
            return value
        if value.maker not in LISTS or not value.args:
            return None
        value = value.args[0]
    return None


def _counts(story: Story, loop: LoopRun) -> bool:
    """Tell whether a loop gives numbers to what it goes over: `ids[w] = len(ids)`."""
    stores = (e for e in story.by_loop.get(loop.site.node, ()) if e.act is EventForm.STORE)
    return any(
        isinstance(v, Result) and v.maker == "builtins.len" for e in stores for v in e.args[:1]
    )


def _is_of_texts(story: Story, found: Value) -> bool:
    if any(_is_text(v) for v in found.inputs):
        return True
    fills = (e for e in story.index.on(found) if e.name in (".add", ".update"))
    return any(_is_text(v) for e in fills for v in e.args)


def _is_text(value: Value) -> bool:
    for found in origins(value, 12):
        if isinstance(found, Result) and found.maker in TEXTS:
            return True
        if isinstance(found, Known):
            return isinstance(found.value, str)
    return False
