"""Of a large library only what trains is looked at, and the rest where names lead to it."""

from __future__ import annotations

import time

import pytest

from traindx.analysis.program.execution import machine
from traindx.analysis.program.project import LARGE, project_of
from traindx.analysis.program.training.program import program_of
from traindx.diagnosis.code_check import diagnose_code
from traindx.examples import make_run
from traindx.model.findings import Status
from traindx.report.lint import lines_of

TRAIN = """
import torch
from lib.nets import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(data, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    {step}
"""
NETS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.other = nn.Linear(4, 2)

    def forward(self, x):
        '''
        >>> loss.backward()
        '''
        return self.head(x)
"""


def library(step: str, extra: str = "") -> dict[str, str]:
    filling = {f"lib/part{n}.py": "import torch\n" for n in range(LARGE)}
    filling["lib/part0.py"] += extra
    return {"train.py": TRAIN.format(step=step), "lib/nets.py": NETS, **filling}


def test_only_what_trains_is_looked_at_and_that_is_said() -> None:
    run = make_run(sources=library("pass"))
    project = project_of(run)
    assert [m.path for m in project.modules] == ["train.py"]
    assert len(project.background) == LARGE + 1
    diagnosis = diagnose_code(run)
    assert [c.cause for c in diagnosis.root_causes][:1] == ["missing-optimizer-step"]
    assert any("do not train" in s.how for s in diagnosis.skipped)


def test_a_class_is_followed_into_a_file_that_is_not_looked_at() -> None:
    diagnosis = diagnose_code(make_run(sources=library("optimizer.step()")))
    assert {f.detector for f in diagnosis.findings} == {"unused-layers"}


def test_nothing_is_called_unused_that_any_file_mentions() -> None:
    sources = library("optimizer.step()", "def use(net):\n    return net.other\n")
    assert not diagnose_code(make_run(sources=sources)).findings


def test_what_a_library_only_imports_is_not_run() -> None:
    sources = library("optimizer.step()", "def use(net):\n    return net.other\n")
    sources["train.py"] = f"import lib.part1\n{sources['train.py']}"
    sources["lib/part1.py"] += "torch.manual_seed(0)\n"
    stories = program_of(make_run(sources=sources)).stories
    assert stories[0].events
    assert not any(e.name == "torch.manual_seed" for s in stories for e in s.events)


def test_what_is_cut_short_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MAX_WORK", 10)
    diagnosis = diagnose_code(make_run(sources={"train.py": TRAIN.format(step="optimizer.step()")}))
    assert any("too large to be followed" in s.how for s in diagnosis.skipped)


def test_rules_without_time_are_one_line_and_no_clean_bill() -> None:
    run = make_run(sources={"train.py": TRAIN.format(step="optimizer.step()")})
    diagnosis = diagnose_code(run, deadline=time.monotonic() - 1)
    lines = list(lines_of(diagnosis))
    assert sum("not reached within --max-time" in line for line in lines) == 1
    assert "rules had no time to look" in lines[-1]
    assert diagnosis.status is not Status.HEALTHY
