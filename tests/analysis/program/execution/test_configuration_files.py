"""What a program loads from its configuration files, and the dictionaries that it keeps it in."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Result, constant
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

USE = """
import torch
{load}
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr={rate})
"""
JSON = '{"optim": {"lr": 0.25}, "seed": 1}'
YAML = "optim:\n  lr: 0.25\nseed: 1\n"


def rate_of(files: dict[str, str]) -> object:
    """Return the learning rate that the script gives its optimizer."""
    stories = program_of(make_run(sources=files)).stories
    made = next(o for s in stories for o in s.made(Kind.OPTIMIZER))
    assert isinstance(made, Result)
    return constant(made.kwargs["lr"])


@pytest.mark.parametrize(
    ("load", "rate", "name", "text"),
    [
        ("import json\nc = json.load(open('c.json'))", "c['optim']['lr']", "c.json", JSON),
        (
            "import json, pathlib\nc = json.loads(pathlib.Path('conf/c.json').read_text())",
            "c['optim'].get('lr', 1.0)",
            "conf/c.json",
            JSON,
        ),
        (
            "import yaml\nwith open('c.yaml') as f:\n    c = yaml.safe_load(f)",
            "c['optim']['lr']",
            "c.yaml",
            YAML,
        ),
        (
            "import argparse, yaml\np = argparse.ArgumentParser()\n"
            "p.add_argument('--config', default='c.yaml')\na = p.parse_args()\n"
            "c = yaml.safe_load(open(a.config))",
            "c['optim']['lr']",
            "c.yaml",
            YAML,
        ),
        (
            "from omegaconf import OmegaConf\nc = OmegaConf.load('c.yaml')",
            "c.optim.lr",
            "c.yaml",
            YAML,
        ),
        (
            "import json\nc = {'optim': {}} | json.load(open('c.json'))",
            "c['optim']['lr']",
            "c.json",
            JSON,
        ),
        (
            "import tomllib\nc = tomllib.load(open('c.toml', 'rb'))",
            "c['optim']['lr']",
            "c.toml",
            "[optim]\nlr = 0.25\n",
        ),
    ],
)
def test_a_setting_of_a_file_is_known(load: str, rate: str, name: str, text: str) -> None:
    assert rate_of({"train.py": USE.format(load=load, rate=rate), name: text}) == 0.25


def test_of_two_files_of_one_name_nothing_is_known() -> None:
    load = "import json\nc = json.load(open(folder / 'c.json'))"
    text = USE.format(load=load, rate="c['optim']['lr']")
    assert rate_of({"train.py": text, "a/c.json": JSON, "b/c.json": JSON}) is None


def test_a_file_that_is_not_named_is_not_taken_for_json() -> None:
    load = "import json, sys\nc = json.load(open(sys.argv[1]))"
    text = USE.format(load=load, rate="c['optim']['lr']")
    assert rate_of({"train.py": text, "words.json": JSON}) is None


def test_a_damaged_file_is_unknown() -> None:
    load = "import yaml\nc = yaml.safe_load(open('c.yaml'))"
    text = USE.format(load=load, rate="c['optim']['lr']")
    assert rate_of({"train.py": text, "c.yaml": "a: [1, 2"}) is None


@pytest.mark.parametrize(
    ("load", "rate"),
    [
        (
            "class Registry(dict):\n    def add(self, name):\n        def keep(value):\n"
            "            self[name] = value\n            return value\n        return keep\n"
            "R = Registry(a=0.5)\nR.add('b')(0.25)",
            "R['b']",
        ),
        (
            "class Book(dict):\n    def __missing__(self, key):\n        self[key] = 0.25\n"
            "        return self[key]",
            "Book()['x']",
        ),
        ("from collections import defaultdict\nd = defaultdict(lambda: 0.25)", "d['x']"),
        (
            "from collections import namedtuple\nT = namedtuple('T', 'steps rate')\nt = T(9, 0.25)",
            "t.rate",
        ),
        (
            "class Rates:\n    def __getitem__(self, key):\n        return {'fast': 0.25}[key]",
            "Rates()['fast']",
        ),
        ("spec = dict(kind='sgd', lr=0.25)\nspec.pop('kind')\n[rate] = spec.values()", "rate"),
    ],
)
def test_a_dictionary_holds_what_was_put_into_it(load: str, rate: str) -> None:
    assert rate_of({"train.py": USE.format(load=load, rate=rate)}) == 0.25


def test_an_import_runs_the_file_that_fills_a_registry() -> None:
    files = {
        "train.py": USE.format(load="import rates\nfrom table import RATES", rate="RATES['fast']"),
        "table.py": "RATES = {}\n",
        "rates.py": "import torch\nfrom table import RATES\nRATES['fast'] = 0.25\n",
    }
    assert rate_of(files) == 0.25


def test_a_registry_may_build_what_another_one_builds() -> None:
    text = """
import torch
class Registry(dict):
    def build(self, name, *args):
        return self[name](*args)
def rate(): return 0.25
RATES, OPTIMIZERS = Registry(), Registry()
RATES["fast"] = rate
def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=RATES.build("fast"))
OPTIMIZERS["sgd"] = sgd
opt = OPTIMIZERS.build("sgd", torch.nn.Linear(4, 2))
"""
    assert rate_of({"train.py": text}) == 0.25
