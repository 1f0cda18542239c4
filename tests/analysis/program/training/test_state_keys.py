"""Which keys a state has, and what a program makes of them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.program import program_of
from traindx.analysis.program.training.state_keys import foreign_states, known_keys
from traindx.examples import make_run

START = """
import torch
from torch import nn

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Inner()
        self.register_buffer("scale", torch.ones(2))

class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Inner()

model = Outer()
"""


def test_keys_are_known_two_levels_deep() -> None:
    program = program_of(make_run(sources={"t.py": START + "made = model.state_dict()\n"}))
    story = program.stories[0]
    model = next(e.receiver for e in story.events if e.name == ".state_dict")
    assert model is not None
    assert known_keys(story, model) == {"encoder.fc.…", "scale.…"}


@pytest.mark.parametrize(
    ("key", "is_foreign"),
    [
        ("k", True),
        ("k.replace('encoder', 'backbone')", False),
        ("'backbone.' + k.split('.', 1)[1]", False),
        ("f'backbone{k[7:]}'", False),
        ("f'net.{k}'", True),
        ("k.removeprefix('module.')", True),
        ("renamed(k)", False),
    ],
)
def test_a_key_becomes_what_the_program_makes_of_it(key: str, is_foreign: bool) -> None:
    text = f"state = {{{key}: v for k, v in model.state_dict().items()}}\n"
    text += "Other().load_state_dict(state, strict=False)\n"
    program = program_of(make_run(sources={"t.py": START + text}))
    assert bool(list(foreign_states(program))) is is_foreign


def test_a_file_of_another_script_is_found_by_its_name() -> None:
    save = START + 'torch.save(model.state_dict(), "a.pt")\n'
    load = START + 'Other().load_state_dict(torch.load("{}"), strict=False)\n'
    found = [
        list(foreign_states(program_of(make_run(sources={"s.py": save, "l.py": text}))))
        for text in (load.format("a.pt"), load.format("b.pt"))
    ]
    assert [bool(f) for f in found] == [True, False]
