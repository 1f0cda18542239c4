"""The resources of the server: playbooks, and the catalogue of causes and detectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx.agent.sdk import NoSuchPage
from traindx.errors import UnknownName

MARKDOWN = "text/markdown"
SCHEME = "traindx:/"


def add_to(server: Any) -> None:
    """Add every resource; a page is made when it is read."""
    from traindx.specialists.playbooks import NAMES

    for name in NAMES:
        _add_playbook(server, name)
    _add_indexes(server)
    _add_pages(server)


def _add_playbook(server: Any, name: str) -> None:
    @server.resource(  # type: ignore[untyped-decorator]
        f"{SCHEME}/playbooks/{name}",
        name=f"playbook-{name}",
        description=f"How the {name} specialist goes from symptom to cause, remedy and proof.",
        mime_type=MARKDOWN,
    )
    def playbook() -> str:
        return playbook_page(name)


def _add_indexes(server: Any) -> None:
    from traindx.report import reference

    pages = {
        "failure-modes": ("Every cause by family: how bad, what finds it.", reference.modes_page),
        "causes": ("The names of all causes, in a sentence each.", reference.causes_index),
        "detectors": ("The names of all detectors, and what they need.", reference.detectors_index),
    }
    for name, (description, page) in pages.items():
        add = server.resource(
            f"{SCHEME}/{name}", name=name, description=description, mime_type=MARKDOWN
        )
        add(page)


def _add_pages(server: Any) -> None:
    def cause(name: str) -> str:
        return _found(cause_page, name)

    def detector(name: str) -> str:
        return _found(detector_page, name)

    pages = {
        "causes": ("cause", "What a cause is, its remedies, and what would settle it.", cause),
        "detectors": ("detector", "What a detector looks for, and when it is wrong.", detector),
    }
    for folder, (name, description, page) in pages.items():
        add = server.resource(
            f"{SCHEME}/{folder}/{{name}}", name=name, description=description, mime_type=MARKDOWN
        )
        add(page)


def _found(page: Callable[[str], str], name: str) -> str:
    try:
        return page(name)
    except UnknownName as error:
        raise NoSuchPage(str(error)) from None


def playbook_page(name: str) -> str:
    """Return the playbook of a specialist."""
    from traindx.specialists.playbooks import playbook_named

    return playbook_named(name).body


def cause_page(name: str) -> str:
    """Return what a cause is."""
    from traindx.api import suggest_names
    from traindx.causes import all_causes
    from traindx.report.catalogue import explain_cause

    found = all_causes().get(name)
    if found is None:
        raise UnknownName(_unknown("cause", name, suggest_names(name)))
    return explain_cause(found)


def detector_page(name: str) -> str:
    """Return what a detector is."""
    from traindx.api import suggest_names
    from traindx.report.catalogue import all_detectors, explain_detector

    for detector in all_detectors():
        if detector.name == name:
            return explain_detector(detector)
    raise UnknownName(_unknown("detector", name, suggest_names(name)))


def _unknown(kind: str, name: str, near: list[str]) -> str:
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"no {kind} is called {name!r}.{hint}"
