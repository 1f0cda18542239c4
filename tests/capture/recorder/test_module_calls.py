"""A model that is listened to is saved, copied, sent away and compiled as if nobody listened."""

from __future__ import annotations

import copy
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from traindx.capture import recorder
from traindx.capture.recorder.session import Session

BATCH = torch.ones(2, 4)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


def train(model: nn.Module) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(BATCH).sum().backward()
        optimizer.step()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    started = recorder.start(str(tmp_path))
    yield started
    started.finish()
    assert started.hooks is not None
    started.hooks.remove()


def saved(model: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded: nn.Module = torch.load(file, weights_only=False)
    return loaded


def pickled(model: nn.Module) -> nn.Module:
    loaded: nn.Module = pickle.loads(pickle.dumps(model))
    return loaded


WAYS = [saved, pickled, copy.deepcopy, torch.jit.script]


def heard(session: Session, model: nn.Module) -> int:
    before = session.forwards
    model(BATCH)
    return session.forwards - before


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("make", [Net, lambda: nn.Sequential(nn.Linear(4, 1))])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_of_a_model_has_no_trace(
    session: Session, make: Callable[[], nn.Module], way: Callable[[nn.Module], Any]
) -> None:
    model = make()
    train(model)
    assert heard(session, model) == 1
    made = way(model)
    assert made(BATCH).equal(model(BATCH))
    assert heard(session, made) == 0
    if way is not torch.jit.script:
        assert type(made._forward_pre_hooks) is OrderedDict
        assert not made._forward_pre_hooks and not made._forward_pre_hooks_with_kwargs


def double(module: nn.Module, args: Any) -> Any:
    return (2 * args[0],)


@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("way", WAYS[:3])
def test_hooks_of_the_user_are_kept(
    session: Session, *, is_before: bool, way: Callable[[nn.Module], nn.Module]
) -> None:
    model = nn.Sequential(nn.Linear(4, 1))
    handle = model.register_forward_pre_hook(double) if is_before else None
    train(model)
    handle = handle or model.register_forward_pre_hook(double)
    assert heard(session, model) == 1
    made = way(model)
    assert made(BATCH).equal(model(BATCH))
    assert heard(session, made) == 0
    handle.remove()
    assert not made(BATCH).equal(model(BATCH))
    assert heard(session, model) == 1


def stop(session: Session) -> None:
    assert session.hooks is not None
    session.finish()
    session.hooks.remove()


def test_a_hook_of_the_user_outlives_ours(session: Session) -> None:
    model = nn.Sequential(nn.Linear(4, 1))
    train(model)
    handle = model.register_forward_pre_hook(double)
    stop(session)
    assert heard(session, model) == 0
    assert model(BATCH).equal(model[0](2 * BATCH))
    handle.remove()
    assert model(BATCH).equal(model[0](BATCH))


def test_in_the_end_a_model_is_as_it_was(session: Session) -> None:
    model = nn.Sequential(nn.Linear(4, 1))
    tables = model._forward_pre_hooks, model._forward_pre_hooks_with_kwargs
    train(model)
    assert model._forward_pre_hooks is not tables[0]
    stop(session)
    assert model._forward_pre_hooks is tables[0]
    assert model._forward_pre_hooks_with_kwargs is tables[1]
    assert not any(tables)
