"""What checkpoints hold, what is read of them, and what shares their memory."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.checkpoints import (
    kept_by_reference,
    loads,
    saves,
    states_taken,
)
from traindx.analysis.program.training.configuration import (
    discarded_copies,
    is_read,
    settings_of,
    written_defaults,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import Program, program_of
from traindx.analysis.program.training.seeds import (
    idle_seeders,
    seeded,
    seeded_together,
    seeded_without_torch,
    uncalled_seeder,
)
from traindx.examples import make_run


def _program(text: str) -> Program:
    return program_of(make_run(sources={"t.py": text}))


MADE = """
import torch
net = torch.nn.Linear(4, 2)
opt = torch.optim.Adam(net.parameters())
"""
LOOP = """
for epoch in range({start}, 9):
    for x, y in loader:
        opt.zero_grad()
        net(x).sub(y).mean().backward()
        opt.step()
"""


def test_states_are_known_by_their_keys() -> None:
    text = "torch.save({'a': net.state_dict(), 'b': opt.state_dict(), 'n': 3}, 'c.pt')"
    (story,) = _program(MADE + text).stories
    (save,) = saves(story)
    assert set(save.states) == {"a", "b"}
    assert save.kinds == {Kind.MODEL, Kind.OPTIMIZER}
    assert save.is_whole
    assert states_taken(story.program) == {Kind.MODEL, Kind.OPTIMIZER}


def test_a_registry_saves_the_states_of_what_it_tracks() -> None:
    text = (
        "parts = dict(n=net, o=opt)\ntorch.save({k: p.state_dict() for k, p in parts.items()}, 'c')"
    )
    (save,) = saves(_program(MADE + text).stories[0])
    assert save.kinds == {Kind.MODEL, Kind.OPTIMIZER}


def test_a_checkpoint_is_resumed_where_a_loop_begins_at_its_epoch() -> None:
    load = "c = torch.load('c.pt')\nnet.load_state_dict(c['net'])\n"
    begin = load + "first = c['epoch'] + 1\n" + LOOP.format(start="first")
    (loaded,) = loads(_program(MADE + begin).stories[0])
    assert loaded.is_resumed
    assert not loaded.is_open
    assert loaded.keys == {"net", "epoch"}
    (other,) = loads(_program(MADE + load + LOOP.format(start="0")).stories[0])
    assert not other.is_resumed
    (handed,) = loads(_program(MADE + load + "restore(c)\n").stories[0])
    assert handed.is_open


@pytest.mark.parametrize(
    ("kept", "is_shared"),
    [
        ("net.state_dict()", True),
        ("dict(net.state_dict())", True),
        ("[p.data for p in net.parameters()]", True),
        ("{k: v.detach() for k, v in net.state_dict().items()}", True),
        ("{k: v.clone() for k, v in net.state_dict().items()}", False),
        ("copy.deepcopy(net.state_dict())", False),
        ("{k: v.cpu() for k, v in net.state_dict().items()}", True),  # it never left the CPU
        ("[p.detach().cpu().numpy() for p in net.parameters()]", True),
        ("{k: v.cpu() for k, v in net.cuda().state_dict().items()}", False),
    ],
)
def test_what_is_kept_may_be_the_tensors_that_train_on(kept: str, is_shared: bool) -> None:
    text = f"import copy{MADE}{LOOP.format(start='0')}    if score(net) > top:\n        w = {kept}\nuse(w)\n"
    assert bool(kept_by_reference(_program(text).stories[0])) is is_shared


def test_seeds_of_a_run_are_told_from_those_of_a_part() -> None:
    both = "import random\nimport numpy as np\ndef {name}(s):\n    random.seed(s)\n    np.random.seed(s)\n"
    (script, *_) = _program(both.format(name="repeat") + "repeat(3)\n").stories
    assert {seeded(e) for e in script.events} >= {"random", "numpy"}
    assert len(list(seeded_together(script))) == 1
    (script, *_) = _program(both.format(name="evaluate") + "evaluate(3)\n").stories
    assert list(seeded_together(script)) == []


@pytest.mark.parametrize("base", ["Dataset", "torch.utils.data.Dataset", "Rows"])
def test_a_dataset_that_is_seeded_for_itself(base: str) -> None:
    text = (
        "import random\nimport torch\nimport numpy as np\n"
        "from torch.utils.data import Dataset\nfrom torch.utils.data import Dataset as Rows\n"
        f"class Noise({base}):\n    def __init__(self, s):\n"
        "        random.seed(s)\n        np.random.seed(s)\nNoise(3)\n"
    )
    assert [pair for s in _program(text).stories for pair in seeded_together(s)] == []


@pytest.mark.parametrize(("more", "is_forgotten"), [("", True), ("torch.manual_seed(3)\n", False)])
def test_torch_that_is_not_seeded_with_the_others(more: str, is_forgotten: bool) -> None:
    both = "import random\nimport numpy as np\nrandom.seed(3)\nnp.random.seed(3)\n"
    program = _program(MADE + both + more + LOOP.format(start="0"))
    assert (seeded_without_torch(program) is not None) is is_forgotten


def test_what_seeds_and_is_never_called_is_idle() -> None:
    text = MADE + "def fix(s):\n    torch.manual_seed(s)\n" + LOOP.format(start="0")
    assert [name for name, _ in idle_seeders(_program(text))] == ["fix"]
    assert (uncalled_seeder(_program(text)) or ("",))[0] == "fix"
    assert uncalled_seeder(_program(text + "torch.manual_seed(0)\n")) is None
    assert list(idle_seeders(_program(text + "fix(0)\n"))) == []


@pytest.mark.parametrize(
    ("end", "is_used"),
    [
        ("print(given)", False),
        ("engine.fit(net, given)", True),
        ("Trainer(**vars(given))", True),
        ("engine.fit(net, given.epochs)", False),
    ],
)
def test_a_configuration_that_is_handed_on_may_be_read(end: str, is_used: bool) -> None:
    text = """
import argparse
options = argparse.ArgumentParser()
options.add_argument("--lr", type=float, default=0.1)
given = options.parse_args()
"""
    program = _program(MADE + text + end)
    (setting,) = settings_of(program, ("lr",))
    assert is_read(program, setting) is is_used


@pytest.mark.parametrize(
    "text",
    [
        "LR = 0.1",
        "LR: float = 0.1",
        "def main():\n    LR = 0.1",
        "made: dict = {'lr': 0.1}",
        "class Made:\n    lr: float = 0.1",
        "p = argparse.ArgumentParser()\np.add_argument('--lr', default=0.1)",
        "first = 0.1\np = argparse.ArgumentParser()\np.add_argument('--lr', default=first)",
    ],
)
def test_where_a_setting_is_written(text: str) -> None:
    (setting,) = settings_of(_program("import argparse" + MADE + text), ("lr",))
    assert setting.value == 0.1


@pytest.mark.parametrize(
    ("given", "is_shared"),
    [
        (["net.state_dict()"], True),
        (["net.state_dict()", "None"], False),
        (["None", "net.state_dict()"], True),
        (["net.state_dict()", "None", "net.state_dict()"], True),
        (["net.state_dict()", "copy.deepcopy(net.state_dict())"], False),
        (["net.state_dict()", "w"], True),
        (["net.state_dict()", "None", "w", "None"], False),
    ],
)
def test_of_several_values_in_a_turn_the_last_is_kept(given: list[str], is_shared: bool) -> None:
    kept = "".join(f"        w = {value}\n" for value in given)
    text = f"import copy{MADE}{LOOP.format(start='0')}    if score(net) > top:\n{kept}use(w)\n"
    assert bool(kept_by_reference(_program(text).stories[0])) is is_shared


@pytest.mark.parametrize(("keeps", "is_best"), [("top = score", True), ("turn = epoch", False)])
def test_a_model_is_kept_of_the_best_score(keeps: str, is_best: bool) -> None:
    text = f"""
top, kept = 0.0, None
for epoch in range(9):
    for x, y in loader:
        opt.zero_grad()
        net(x).sub(y).mean().backward()
        opt.step()
    score = validate(net)
    if score > top:
        {keeps}
        kept = net
torch.save(kept, "best.pt")
"""
    assert bool(kept_by_reference(_program(MADE + text).stories[0])) is is_best


def test_settings_that_go_nowhere() -> None:
    (story,) = _program(MADE + "opt.defaults['lr'] = 0.1\n").stories
    assert len(list(written_defaults(story))) == 1
    later = "opt.defaults['lr'] = 0.1\nopt.add_param_group({'params': more})\n"
    assert list(written_defaults(_program(MADE + later).stories[0])) == []
    copies = MADE + "import dataclasses\n{}dataclasses.replace(config, lr=1)\n"
    assert len(list(discarded_copies(_program(copies.format("")).stories[0]))) == 1
    assert list(discarded_copies(_program(copies.format("config = ")).stories[0])) == []
