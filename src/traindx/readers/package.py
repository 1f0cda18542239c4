"""The context package: a JSON file that names the artifacts of a run by their role."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.errors import UnreadableArtifact
from traindx.model.run import Artifact

MAX_BYTES = 8 << 20
MAX_ROLE = 60  # characters
_ERROR_TEXT = re.compile(r"\n|\b\w*(?:Error|Exception|Warning)\b\s*:", re.ASCII)
_EXAMPLE = 'a JSON object such as {"artifacts": {"training_logs": "train.log"}}'


@dataclass(slots=True)
class Package:
    """What a context package names: files that exist, texts in it, and what is missing."""

    files: list[Path] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)  # a role and what was written there
    missing: list[Artifact] = field(default_factory=list)
    symptoms: list[str] = field(default_factory=list)


def read_package(path: Path) -> Package:
    """Read a context package; a path in it that does not exist is noted, not fatal."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8-sig", errors="replace")
        data = json.loads(text)
    except OSError as error:
        why = f"it cannot be opened: {error.strerror or error}"
        raise UnreadableArtifact(str(path), why, _EXAMPLE) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableArtifact(str(path), f"it is no JSON: {error}", _EXAMPLE) from None
    if not isinstance(data, dict):
        raise UnreadableArtifact(str(path), "it is no JSON object", _EXAMPLE)
    package = Package()
    for role, value in _entries(data.get("artifacts")):
        _add(package, role, value, path)
    symptoms = (_written(str(s)) for s in _as_list(data.get("symptoms")))
    package.symptoms += [s for s in symptoms if s.strip()]
    return package


def _entries(artifacts: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(artifacts, dict):
        for role, value in artifacts.items():
            for item in _as_list(value):
                yield _named(str(role)), item
    else:
        for item in _as_list(artifacts):
            yield "artifact", item


def _named(role: str) -> str:
    """Return a role as what it is used for: a name for people, and of a file."""
    return re.sub(r"[^\w .-]", "-", _written(role))[:MAX_ROLE]


def _written(text: str) -> str:
    """Return text that can be written: half of a surrogate pair cannot."""
    return text.encode("utf-8", "replace").decode()


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _add(package: Package, role: str, value: Any, path: Path) -> None:
    if isinstance(value, dict):
        if set(value) & {"path", "file"}:
            _add(package, role, value.get("path") or value.get("file"), path)
        else:  # a configuration that was written out in place
            package.texts.append((role, json.dumps(value, indent=1)))
        return
    if not isinstance(value, str) or not value.strip():
        note = f"{role} is neither a path nor a list of paths"
        package.missing.append(Artifact(f"{path}: {role}", "", (note,)))
        return
    found = _locate(value, path.parent)
    if found is not None:
        package.files.append(found)
    elif _ERROR_TEXT.search(value):  # the message itself, where its file was asked for
        package.texts.append((role, _written(value)))
    else:
        note = f"{role}: it does not exist; checked in {path.parent} and in the current folder"
        package.missing.append(Artifact(value, "", (note,)))


def _locate(value: str, folder: Path) -> Path | None:
    """Look beside the package, then in the current folder."""
    for candidate in (folder / value, Path(value)):
        try:
            if candidate.exists():
                return candidate
        except (OSError, ValueError):  # too long for a name, or with a NUL in it
            continue
    return None
