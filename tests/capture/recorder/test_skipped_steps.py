"""Steps that are let pass unseen: counted, and the first that goes wrong is still replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from traindx.capture import recorder
from traindx.capture.recorder import budget
from traindx.capture.recorder.budget import Budget
from traindx.capture.recorder.evaluation_passes import MAX_TOLD_IDLE
from traindx.capture.recorder.session import Session

STEPS, BAD = 60, 51


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a recorder that lets all steps pass once it knows how long one takes."""
    monkeypatch.setattr(budget, "GRANT_S", 0.0)
    monkeypatch.setattr(Budget, "allows", lambda self, step: step == 0)
    started = recorder.start(str(tmp_path), overhead=1e-9)
    yield started
    started.finish()
    assert started.hooks is not None
    started.hooks.remove()


class Training(nn.Module):
    """A model whose loss, or only the gradient of it, is no number at one step."""

    def __init__(self, bad: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bad, self.step = bad, 0
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        if self.step == BAD and self.bad == "loss":
            hidden = torch.log(hidden - hidden - 1.0)
        if self.step == BAD and self.bad == "gradient":
            hidden = hidden + torch.sqrt(hidden - hidden)
        return self.last(hidden)


def train(model: Training, session: Session) -> int:
    """Return how many steps had passed unseen before the bad one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(240, 4, generator=torch.Generator().manual_seed(0)))
    passed = 0
    for number, (x,) in enumerate(DataLoader(data, batch_size=4)):
        model.step = number
        if number == BAD:
            assert session.idle or model.bad == "nothing"
            passed = session.budget.passed
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    assert number == STEPS - 1
    return passed


def records(session: Session) -> list[dict[str, Any]]:
    session.finish()
    paths = Path(session.folder).glob("rank*.jsonl")
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_what_is_no_number_is_told_at_its_own_step(session: Session, bad: str) -> None:
    assert train(Training(bad), session) > 10
    found = [r for r in records(session) if r["k"] == "nonfinite"]
    assert [(r["step"], r["seen_in"]) for r in found] == [(BAD, bad)]
    # pytest rewrites the statements of this file, so only the loss can be replayed from its graph
    assert bad == "gradient" or (found[0]["op"], found[0]["is_exact"]) == ("log", True)


def test_steps_that_pass_are_counted_and_not_timed(session: Session) -> None:
    train(Training("nothing"), session)
    said = records(session)
    assert [r["steps"] for r in said if r["k"] == "counts"][-1] == STEPS
    timed = [t for r in said if r["k"] == "steps" for t in r["total_s"] if t is not None]
    assert len(timed) + session.budget.passed == STEPS
    assert session.budget.passed > 10
    epochs = [r for r in said if r["k"] == "epoch"]
    assert [(e["batches"], e["trained"]) for e in epochs] == [(STEPS, STEPS)]


def test_an_error_at_a_step_that_passes_ends_the_recording_only(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("traindx.capture.recorder.skipped_steps._random_state", fail)
    train(Training("nothing"), session)
    assert session.is_off
    assert "recording stopped: ZeroDivisionError: ours" in capsys.readouterr().err


def test_the_losses_of_steps_that_pass_are_kept_in_order(session: Session) -> None:
    assert train(Training("nothing"), session) > 10
    blocks = [r for r in records(session) if r["k"] == "steps"]
    steps = [step for block in blocks for step in block["step"]]
    losses = [loss for block in blocks for loss in block["loss"]]
    assert steps == list(range(STEPS))
    assert all(isinstance(loss, float) for loss in losses)


@pytest.fixture
def blind_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a recorder for which even the steps that pass are too much."""
    monkeypatch.setattr(budget, "BLIND_AFTER_S", 0.0)
    monkeypatch.setattr(Budget, "_asked_s", lambda self: 1.0)
    return session


def test_of_blind_steps_only_the_number_is_known(blind_session: Session) -> None:
    train(Training("nothing"), blind_session)
    said = records(blind_session)
    assert blind_session.budget.blind > 20
    assert [r["steps"] for r in said if r["k"] == "counts"][-1] == STEPS
    steps = [step for r in said if r["k"] == "steps" for step in r["step"]]
    assert len(steps) == STEPS - blind_session.budget.blind
    assert steps == sorted(set(steps))


def test_what_is_no_number_at_a_blind_step_is_told_later(blind_session: Session) -> None:
    train(Training("loss"), blind_session)
    assert blind_session.is_blind  # to its end: nothing was asked
    blind_session.wake()
    model = Training("nothing")
    with torch.no_grad():
        model.first.weight.fill_(float("nan"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model(torch.ones(4, 4)).sum().backward()
    optimizer.step()
    assert [r["seen_in"] for r in records(blind_session) if r["k"] == "nonfinite"] == ["loss"]


def test_a_crash_at_a_blind_step_shows_the_batch_of_that_step(blind_session: Session) -> None:
    model = Training("nothing")
    train(model, blind_session)
    assert blind_session.is_blind
    batch = torch.full((2, 4), 7.0)
    model(batch)
    assert blind_session.now.inputs[0].args[0] is batch
    assert blind_session.now.rng_state is None


@pytest.mark.parametrize(
    ("step_s", "blocks"), [(1.0, 1), (0.014, 1), (0.01, 2), (0.008, 3), (1e-6, 16)]
)
def test_shorter_steps_have_more_blind_ones(step_s: float, blocks: int) -> None:
    spent = Budget(0.02)
    spent.passed, spent.asked_s, spent.passed_s, spent.spent_s = 1000, 0.1, 3.0, 9.0
    spent.started -= 9.0 / spent.aim  # as much as it may
    idle = spent.idle_steps(2000, step_s, may_be_blind=True)
    assert spent.blocks == blocks
    assert not idle or sum(not spent.is_blind(i + 1) for i in range(idle)) * blocks == idle
    assert not any(spent.is_blind(i) for i in range(8))


@pytest.fixture
def looking_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return one that has looked at steps since the model was found, at the first of them."""
    monkeypatch.setattr(Budget, "allows", lambda self, step: step < 4)
    return session


def test_evaluations_between_steps_that_pass_are_told_with_their_inputs(
    looking_session: Session,
) -> None:
    session, model = looking_session, Training("nothing")
    train(model, session)
    assert session.idle
    model.eval()
    for scale in (1.0, 100.0):
        with torch.no_grad():
            for _ in range(3):
                model(torch.full((4, 4), scale))
        model(torch.ones(4, 4)).mean().backward()
    said = records(session)
    told = [r for r in said if r["k"] == "evaluation"]
    assert [r["forwards"] for r in told] == [3, 3]
    assert [r["inputs"][0]["mean"] for r in told] == [1.0, 100.0]
    sample = [r for r in said if r["k"] == "sample"][-1]
    assert {r["entered"] for r in told} == {sample["entered"]}
    assert sample["inputs"][0]["shape"] == [4, 4]


def test_a_model_that_acts_between_steps_is_looked_at_ever_more_rarely(
    looking_session: Session,
) -> None:
    session, model = looking_session, Training("nothing")
    train(model, session)
    for _ in range(40):
        with torch.no_grad():
            model(torch.ones(1, 4))
        model(torch.ones(4, 4)).mean().backward()
    told = [r for r in records(session) if r["k"] == "evaluation"]
    assert len(told) == MAX_TOLD_IDLE
    assert sum(bool(r["inputs"]) for r in told) == 5  # the first, second, third, fourth, eighth


def test_what_was_spent_too_much_is_paid_back_first() -> None:
    spent = Budget(0.02)
    spent.passed, spent.asked_s, spent.passed_s, spent.spent_s = 1000, 0.1, 3.0, 9.0
    spent.started -= 8.9 / spent.aim
    assert spent.idle_steps(2000, 0.01, may_be_blind=True)
    assert spent.blocks == budget.MAX_BLOCKS


def test_ranks_are_never_blind() -> None:
    spent = Budget(0.02)
    spent.passed, spent.asked_s, spent.passed_s, spent.spent_s = 1000, 0.1, 3.0, 9.0
    assert spent.idle_steps(2000, 1e-5, may_be_blind=False)
    assert spent.blocks == 1


def test_no_look_that_is_due_is_slept_through() -> None:
    spent = Budget(0.02)
    spent.passed, spent.asked_s, spent.passed_s, spent.spent_s = 900, 0.1, 0.05, 9.0
    due, step = [], 0
    for step in range(1000):
        if spent.allows(step):
            due.append(step)
    left = (budget.GROWTH - 1) * due[-1] - (step - due[-1])
    assert 0 < spent.idle_steps(step, 1e-4, may_be_blind=True) <= left
    assert 2 * left - 2 <= spent.idle_steps(2 * step, 1e-4, may_be_blind=True) <= 2 * left


class Outer(torch.optim.Optimizer):
    """An optimizer that has another one take its steps."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.01})
        self.inner = torch.optim.SGD(self.param_groups, lr=0.01)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        self.inner.step()


@pytest.mark.parametrize("kind", [torch.optim.SGD, Outer])
def test_steps_and_passes_are_counted_through_blind_ones(
    blind_session: Session, kind: type[torch.optim.Optimizer]
) -> None:
    model = Training("nothing")
    optimizers = [kind(part.parameters()) for part in (model.first, model.last)]
    for _ in range(STEPS):
        for optimizer in optimizers:
            for _ in range(2):
                model(torch.ones(4, 4)).square().mean().backward()
            optimizer.step()
            model.zero_grad()
    counts = [r for r in records(blind_session) if r["k"] == "counts"][-1]
    assert blind_session.budget.blind > 40 or kind is Outer
    assert (counts["steps"], counts["backwards"]) == (2 * STEPS, 4 * STEPS)
    assert [o.steps for o in blind_session.known.owners.values() if o.steps] == [STEPS, STEPS]


def step(model: Training, optimizer: torch.optim.Optimizer, *others: object) -> None:
    optimizer.zero_grad()
    model(torch.ones(4, 4)).square().mean().backward()
    optimizer.step()


def test_evaluations_between_blind_steps_are_told_one_by_one(blind_session: Session) -> None:
    model = Training("nothing")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while not blind_session.is_blind:
        step(model, optimizer)
    for _ in range(2):
        with torch.no_grad():
            for _ in range(3):
                model(torch.ones(4, 4))
        step(model, optimizer)
    assert blind_session.is_blind
    told = [r for r in records(blind_session) if r["k"] == "evaluation"]
    assert [r["forwards"] for r in told] == [3, 3]


@pytest.mark.parametrize("is_new", [True, False])
def test_another_optimizer_ends_blindness(blind_session: Session, *, is_new: bool) -> None:
    model = Training("nothing")
    optimizer, second = (torch.optim.SGD(model.parameters(), lr=0.01) for _ in range(2))
    while not blind_session.is_blind:
        step(model, optimizer, second)  # the names of a frame without assertions are read
    if is_new:
        second = torch.optim.SGD(model.parameters(), lr=0.01)
    step(model, second)
    assert not blind_session.is_blind
    known = len(blind_session.known.owners)
    step(model, second)
    assert len(blind_session.known.owners) == known + is_new
    assert blind_session.known.owner_of(second).steps == 1  # type: ignore[union-attr]
