"""The playbooks name only what exists, and leave no cause of their specialist out."""

from __future__ import annotations

import re

import pytest

from traindx.api import explain_name
from traindx.causes import all_causes
from traindx.cli.main import COMMANDS, build_parser
from traindx.errors import UnknownName
from traindx.report.catalogue import all_names
from traindx.specialists.playbooks import NAMES, Playbook, playbook_named, playbooks
from traindx.specialists.routing.ranking import ENOUGH

NAMED = re.compile(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`")
COMMAND = re.compile(r"`traindx ([a-z]+)")
HEADINGS = (
    "## When it applies",
    "## What to gather",
    "## From symptom to cause",
    "## Remedies",
    "## How to verify",
    "## Red flags",
    "## Excuses that lead astray",
)
each = pytest.mark.parametrize("playbook", playbooks(), ids=lambda p: p.name)


def test_there_is_one_for_every_specialist_of_a_cause() -> None:
    assert {cause.specialist for cause in all_causes().values()} == set(NAMES)
    assert tuple(p.name for p in playbooks()) == NAMES


@each
def test_every_cause_and_detector_it_names_exists(playbook: Playbook) -> None:
    known = set(all_names())
    assert [name for name in NAMED.findall(playbook.body) if name not in known] == []


@each
def test_every_command_it_names_exists(playbook: Playbook) -> None:
    commands = {command.__name__.rpartition(".")[2] for command in COMMANDS}
    text = "\n".join((playbook.body, *playbook.first_steps, *playbook.artifacts_wanted))
    assert set(COMMAND.findall(text)) <= commands
    assert build_parser() is not None


@each
def test_it_leaves_no_cause_of_its_own_out(playbook: Playbook) -> None:
    own = {c.name for c in all_causes().values() if c.specialist == playbook.name}
    assert {name for name in own if f"`{name}`" not in playbook.body} == set()


@each
def test_it_has_the_parts_of_a_playbook(playbook: Playbook) -> None:
    places = [playbook.body.find(heading) for heading in HEADINGS]
    assert -1 not in places
    assert places == sorted(places)
    assert playbook.body.startswith(f"# {playbook.title}\n")


@each
def test_its_front_matter_is_complete(playbook: Playbook) -> None:
    assert playbook.description.endswith((".", '"'))
    assert len(playbook.first_steps) >= 3
    assert len(playbook.artifacts_wanted) >= 3
    assert any(float(c.get("weight", ENOUGH)) >= ENOUGH for c in playbook.concepts.values())


@each
def test_it_can_be_read_on_the_command_line(playbook: Playbook) -> None:
    assert explain_name(playbook.name) == playbook.body.rstrip()


def test_an_unknown_specialist_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownName, match="debugging-techniques"):
        playbook_named("plumbing")
