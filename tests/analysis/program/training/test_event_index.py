"""Events are looked up as a search through all of them would find them."""

from __future__ import annotations

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
net = torch.nn.Linear(2, 2)
kept = {}
for i in range(2):
    net.scale = i
    kept[i] = net(torch.zeros(2))
    net.bias.data = torch.zeros(2)
"""
STORY = program_of(script(PROGRAM)).stories[0]
STORES = [e for e in STORY.events if e.act is EventForm.STORE]


def test_stores_are_found_by_the_name_of_the_attribute() -> None:
    for names in (["scale"], ["[]"], ["data", "scale"], ["absent"], []):
        assert list(STORY.index.stored(*names)) == [e for e in STORES if e.name in names]
    assert STORY.index.stored("scale")


def test_a_call_that_bears_the_name_of_an_attribute_is_no_store() -> None:
    assert STORY.index.named("torch.zeros")
    assert not STORY.index.stored("torch.zeros")


def test_a_place_has_the_events_of_each_turn() -> None:
    node = STORES[0].node
    again = STORY.index.at(node)
    assert len(again) > 1
    assert list(again) == [e for e in STORY.events if e.node is node]
