"""The playbooks: one Markdown file per specialist; the front matter is what routing reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from traindx.errors import UnknownName

__all__ = ["NAMES", "Playbook", "playbook_named", "playbooks", "read_yaml"]

# in the order in which equal claims are heard: what breaks everything else comes first
NAMES = (
    "debugging-techniques",
    "distributed-training-strategies",
    "tensor-operations-and-memory",
    "performance-profiling",
    "data-pipeline-validation",
    "custom-autograd-functions",
    "module-design-patterns",
    "checkpointing-and-reproducibility",
    "mixed-precision-and-optimization",
)
_FENCE = "---\n"


@dataclass(frozen=True, slots=True)
class Playbook:
    """What one specialist knows.

    `unsettled` ends the sentence "the question proposes a remedy; …" when this specialist has to
    look first. `concepts` holds the words that lead here, as written in the front matter.
    """

    name: str
    title: str
    description: str
    unsettled: str
    first_steps: tuple[str, ...]
    artifacts_wanted: tuple[str, ...]
    concepts: Mapping[str, Mapping[str, Any]]
    body: str


@cache
def playbooks() -> tuple[Playbook, ...]:
    """Return every playbook, in the order of `NAMES`."""
    return tuple(_parsed(name) for name in NAMES)


def playbook_named(name: str) -> Playbook:
    """Return the playbook of a specialist."""
    for playbook in playbooks():
        if playbook.name == name:
            return playbook
    raise UnknownName(f"no specialist is called {name!r}. Try one of: {', '.join(NAMES)}")


def read_yaml(text: str) -> Any:
    """Return YAML whose every value is text, so that `off` and `no` are words and not switches."""
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))


def _parsed(name: str) -> Playbook:
    text = files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    _, front, body = text.split(_FENCE, 2)
    told = read_yaml(front)
    return Playbook(
        name=told["name"],
        title=told["title"],
        description=" ".join(told["description"].split()),
        unsettled=told["unsettled"],
        first_steps=tuple(told["first_steps"]),
        artifacts_wanted=tuple(told["artifacts_wanted"]),
        concepts=told["concepts"],
        body=body.lstrip("\n"),
    )
