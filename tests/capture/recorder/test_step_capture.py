"""A step that is captured whole: what is written of it, and that the training is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.capture import recorder
from traindx.model.run import Run
from traindx.readers.opening import open_paths

Train = Callable[[], Any]


@pytest.fixture
def run_of(tmp_path: Path) -> Iterator[Callable[[Train], Run]]:
    """Train under the recorder and read what it wrote."""
    sessions = []

    def run(train: Train) -> Run:
        session = recorder.start(str(tmp_path), overhead=1.0)
        sessions.append(session)
        try:
            train()
        finally:
            session.finish()
        return open_paths([str(next(tmp_path.glob("rank*.jsonl")))])

    yield run
    for session in sessions:
        assert session.hooks is not None
        session.hooks.remove()
    assert torch._C._len_torch_dispatch_stack() == 0


def steps(run: Run, **kind: bool) -> list[Step]:
    return list(steps_of(run, **kind))


def classifier() -> tuple[nn.Module, torch.optim.Optimizer, DataLoader[Any]]:
    torch.manual_seed(0)
    inputs = torch.randn(64, 6)
    labels = (inputs[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return model, optimizer, DataLoader(TensorDataset(inputs, labels), batch_size=16)


def train_classifier(epochs: int = 2) -> list[float]:
    model, optimizer, loader = classifier()
    losses = []
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            for x, y in loader:
                losses.append((model(x).argmax(1) == y).float().mean().item())
    return losses


def test_roles_and_operations_of_a_training_step(run_of: Callable[[Train], Run]) -> None:
    (step,) = steps(run_of(train_classifier), training=True)
    assert [act.name for act in step.named("addmm", "relu", "log_softmax", "nll_loss")] == [
        "addmm", "relu", "addmm", "log_softmax", "nll_loss",
    ]  # fmt: skip
    assert [node.facts.role for node in step.inputs] == ["batch/0"]
    assert [node.facts.role for node in step.labels] == ["batch/1"]
    (loss,) = step.losses
    names = {n.label for n in loss.ancestors if n.is_parameter}
    assert names == {"0.weight", "0.bias", "3.weight", "3.bias"}
    hidden = next(step.named("relu"))
    assert hidden.module == "1"
    assert hidden.place is not None and hidden.place.file == __file__


def test_an_evaluation_is_captured_with_its_metric(run_of: Callable[[Train], Run]) -> None:
    found = steps(run_of(train_classifier), training=False)
    assert found
    last = found[-1]
    assert not list(last.named("bernoulli")), "dropout is off in evaluation"
    (equal,) = last.named("eq")
    assert {n.facts.role for n in equal.inputs} >= {"batch/1"}
    assert all(act.record.is_without_grad for act in last.acts)


def test_losses_are_the_same_with_and_without(run_of: Callable[[Train], Run]) -> None:
    alone = train_classifier()
    beside: list[float] = []
    run_of(lambda: beside.extend(train_classifier()))
    assert beside == alone


def test_probabilities_are_known_by_their_sums(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        model, optimizer, loader = classifier()
        for x, y in loader:
            e = model(x).exp()
            loss = functional.cross_entropy(e / e.sum(-1, keepdim=True), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    (step,) = steps(run_of(train), training=True)
    (given,) = (act.inputs[0] for act in step.named("log_softmax"))
    assert given.facts.ones == (1,)


def test_a_logical_step_has_every_optimizer_in_it(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        torch.manual_seed(0)
        maker, critic = nn.Linear(4, 2), nn.Linear(2, 1)
        first = torch.optim.SGD(critic.parameters(), lr=0.1)
        second = torch.optim.SGD(maker.parameters(), lr=0.1)
        for _ in range(6):
            noise = torch.randn(8, 4)
            first.zero_grad()
            critic(maker(noise).detach()).mean().backward()
            first.step()
            second.zero_grad()
            (-critic(maker(noise)).mean()).backward()
            second.step()

    (step,) = steps(run_of(train), training=True)
    assert len(step.losses) == 2


def test_a_closure_is_part_of_the_step(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        torch.manual_seed(0)
        model, inputs = nn.Linear(4, 1), torch.randn(32, 4)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)

    (step,) = steps(run_of(train), training=True)
    assert step.losses and list(step.named("pow"))


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_program_is_left_alone(run_of: Callable[[Train], Run]) -> None:
    counter = _Counter()

    def train() -> None:
        model, optimizer, loader = classifier()
        for x, y in loader:
            with counter:
                loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    run_of(train)
    alone, counter = counter.calls, _Counter()
    train()
    assert counter.calls == alone


def test_a_compiled_model_is_skipped_and_said(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        model, optimizer, loader = classifier()
        fast = torch.compile(model, backend="eager")
        for x, y in loader:
            loss = functional.cross_entropy(fast(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    run = run_of(train)
    torch._dynamo.reset()
    assert run.recording is not None
    (told,) = run.recording.processes[0].captured
    assert "compiled" in told.why and not told.operations


def test_what_is_changed_in_place_is_another_tensor(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        model, optimizer, loader = classifier()
        for x, y in loader:
            shifted = x.clone()
            shifted += 100.0
            loss = functional.cross_entropy(model(shifted), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    (step,) = steps(run_of(train), training=True)
    (added,) = step.named("add")
    before, after = added.inputs[0], added.outputs[0]
    assert before is not after
    assert before.facts.memory == after.facts.memory
    assert before.facts.high < 50 < after.facts.low


def test_a_very_long_step_is_cut_off_and_said(
    run_of: Callable[[Train], Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traindx.capture.recorder.step_capture.MAX_OPERATIONS", 5)
    run = run_of(train_classifier)
    assert run.recording is not None
    told = run.recording.processes[0].captured[0]
    assert len(told.operations) == 5
    assert "first 5 operations" in told.why


def test_a_policy_that_acts_before_it_learns(run_of: Callable[[Train], Run]) -> None:
    def train() -> None:
        policy = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
        for _ in range(6):
            with torch.no_grad():
                seen = [torch.randn(4) for _ in range(5)]
                for observation in seen:
                    policy(observation)
            optimizer.zero_grad()
            policy(torch.stack(seen)).square().mean().backward()
            optimizer.step()

    run = run_of(train)
    assert len(steps(run, training=False)) == 2
    assert [bool(s.losses) for s in steps(run, training=True)] == [True]
