"""One logical step of each way to train: what is captured of it, and that nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from traindx.analysis.steps.step_graph import Step, steps_of
from traindx.capture import recorder
from traindx.readers.opening import open_paths

MEGABYTE = 1 << 20
Losses = list[float]
Train = Callable[[], Losses]


class Captured:
    """What is captured of one way to train, which is run with and without the recorder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions: list[Any] = []

    def __call__(self, train: Train) -> list[Step]:
        alone = train()
        session = recorder.start(str(self.folder), overhead=1.0)
        self.sessions.append(session)
        try:
            beside = train()
        finally:
            session.finish()
            session.hooks.remove()
        assert beside == alone, "the losses are the same to the bit"
        (path,) = self.folder.glob("rank*.jsonl")
        for line in path.read_text().splitlines():
            assert "captured" not in line or len(line) <= MEGABYTE
        assert "recording stopped" not in path.read_text()
        return list(steps_of(open_paths([str(path)])))


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Captured]:
    kept = (torch.autograd.backward, torch.autograd.grad, DataLoader.__iter__)
    yield Captured(tmp_path)
    assert torch._C._len_torch_dispatch_stack() == 0
    assert kept == (torch.autograd.backward, torch.autograd.grad, DataLoader.__iter__)


def net(*, dropout: float = 0.0) -> nn.Sequential:
    torch.manual_seed(0)
    parts = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3)]
    return nn.Sequential(*parts)


def loader(size: int = 96) -> DataLoader[Any]:
    torch.manual_seed(1)
    inputs = torch.randn(size, 6)
    return DataLoader(TensorDataset(inputs, (inputs[:, 0] > 0).long()), batch_size=16)


def roles(step: Step, start: str) -> set[str]:
    return {n.facts.role for n in step.nodes if n.facts.role.startswith(start)}


def line_of(step: Step, name: str) -> str:
    act = next(step.named(name))
    assert act.place is not None and act.place.file == __file__
    return act.place.code


def assert_whole(step: Step, *, parameters: int = 6, losses: int = 1) -> None:
    """Forward, loss, backward and update are there, and the tensors have their roles."""
    assert len(step.losses) == losses
    assert step.captured.backward_operations > 0
    assert not step.captured.why
    assert step.captured.updates, "what the optimizer did"
    assert len(roles(step, "parameter:")) == parameters
    assert [n.facts.role for n in step.inputs] == ["batch/0"]
    assert [n.facts.role for n in step.labels] == ["batch/1"]
    assert step.outputs and all(n in step.parametric for n in step.outputs)


def only_training(steps: list[Step]) -> Step:
    (step,) = (s for s in steps if s.is_training)
    return step


# --- loops ----------------------------------------------------------------------------------------


def plain(*, to_none: bool = True) -> Losses:
    model, losses = net(dropout=0.5), []
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader():
        loss = functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=to_none)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("to_none", [True, False])
def test_a_plain_loop(captured: Captured, to_none: bool) -> None:
    step = only_training(captured(lambda: plain(to_none=to_none)))
    assert_whole(step)
    assert roles(step, "buffer:") == {
        "buffer:1.running_mean", "buffer:1.running_var", "buffer:1.num_batches_tracked",
    }  # fmt: skip
    assert "state:0.weight/exp_avg" in roles(step, "state:")
    assert len([*step.named("addmm")]) == 2 and len([*step.named("nll_loss")]) == 1
    assert next(step.named("relu")).module == "2"
    assert "cross_entropy(model(x), y)" in line_of(step, "relu")
    (relu,) = step.named("relu")
    assert relu.inputs[0].facts.grad_zeros > 0, "a ReLU zeroes gradients"


def accumulated() -> Losses:
    model, losses = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x, y) in enumerate(loader(192)):
        loss = functional.cross_entropy(model(x), y) / 2
        loss.backward()
        losses.append(loss.item())
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return losses


def test_accumulated_gradients_are_one_step(captured: Captured) -> None:
    step = only_training(captured(accumulated))
    assert len(step.losses) == 2
    assert len([*step.named("addmm")]) == 4
    assert {n.facts.role for n in step.inputs} == {"batch/0"} and len(step.inputs) == 2
    assert step.captured.updates


def adversarial() -> Losses:
    torch.manual_seed(0)
    maker, critic, losses = nn.Linear(4, 6), nn.Linear(6, 1), []
    first = torch.optim.Adam(critic.parameters())
    second = torch.optim.Adam(maker.parameters())
    for x, _ in loader():
        fake = maker(torch.randn(16, 4))
        critic_loss = functional.softplus(critic(fake.detach())).mean() - critic(x).mean()
        first.zero_grad()
        critic_loss.backward()
        first.step()
        maker_loss = functional.softplus(-critic(fake)).mean()
        second.zero_grad()
        maker_loss.backward()
        second.step()
        losses += [critic_loss.item(), maker_loss.item()]
    return losses


def test_a_gan_has_two_losses_in_a_step(captured: Captured) -> None:
    step = only_training(captured(adversarial))
    assert len(step.losses) == 2 and step.captured.backward_operations
    assert len(roles(step, "parameter:")) == 4
    changed = {step.node(n).facts.role for u in step.captured.updates for n in u.outputs}
    assert len({role for role in changed if role.startswith("parameter:")}) == 4
    assert len(step.outputs) == 4, "one of the maker, three of the critic"


def reinforced() -> Losses:
    torch.manual_seed(0)
    policy, losses = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), []
    optimizer = torch.optim.Adam(policy.parameters())
    for _ in range(6):
        state, seen, taken, gains = torch.zeros(4), [], [], []
        for _ in range(5):
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(state)).sample()
            seen.append(state)
            taken.append(action)
            gains.append(float(action) - state.sum().item())
            state = state + torch.randn(4) * 0.1
        logits = policy(torch.stack(seen))
        log_probs = torch.distributions.Categorical(logits=logits).log_prob(torch.stack(taken))
        loss = -(log_probs * torch.tensor(gains)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_policy_is_captured_where_it_learns(captured: Captured) -> None:
    step = only_training(captured(reinforced))
    (loss,) = step.losses
    assert {n.label for n in loss.ancestors if n.is_parameter} == {
        "0.weight", "0.bias", "2.weight", "2.bias",
    }  # fmt: skip
    assert step.captured.updates and not step.captured.why


def with_closure() -> Losses:
    model, (x, y), losses = net(), next(iter(loader())), []
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(5):
        optimizer.step(closure)
    return losses


def test_a_closure_is_called_inside_of_the_step(captured: Captured) -> None:
    step = only_training(captured(with_closure))
    assert step.losses and step.captured.updates
    assert len(step.losses) == len([*step.named("nll_loss")]) <= 3, "one call of step"


class Checkpointed(nn.Module):
    def __init__(self, *, is_reentrant: bool) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.is_reentrant = is_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        hidden = checkpoint(self._middle, hidden, use_reentrant=self.is_reentrant)
        return self.last(hidden)

    def _middle(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(x).tanh()


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_what_is_computed_again_in_backward_stands_once(
    captured: Captured, is_reentrant: bool
) -> None:
    def train() -> Losses:
        torch.manual_seed(0)
        model, losses = Checkpointed(is_reentrant=is_reentrant), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    step = only_training(captured(train))
    assert_whole(step)
    assert len([*step.named("tanh")]) == 1 and len([*step.named("addmm")]) == 3
    assert "self.second(x).tanh()" in line_of(step, "tanh")


def test_autocast_shows_its_types(captured: Captured) -> None:
    def train() -> Losses:
        model, losses = net(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    step = only_training(captured(train))
    assert_whole(step)
    assert {a.outputs[0].facts.dtype for a in step.named("addmm")} == {"bfloat16"}
    assert step.losses[0].facts.dtype == "float32"


def test_several_models_under_one_optimizer(captured: Captured) -> None:
    def train() -> Losses:
        torch.manual_seed(0)
        encoder, head, losses = nn.Linear(6, 8), nn.Linear(8, 3), []
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for x, y in loader():
            loss = functional.cross_entropy(head(encoder(x).relu()), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    step = only_training(captured(train))
    assert_whole(step, parameters=4)
    assert len(step.outputs) == 2


def test_gradients_by_autograd_grad_given_to_an_optimizer(captured: Captured) -> None:
    def train() -> Losses:
        model, losses = net(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            loss = functional.cross_entropy(model(x), y)
            found = torch.autograd.grad(loss, list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), found, strict=True):
                parameter.grad = gradient
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert_whole(only_training(captured(train)))


def test_an_update_by_hand(captured: Captured) -> None:
    def train() -> Losses:
        model, losses = net(), []
        for x, y in loader(192):
            loss = functional.cross_entropy(model(x), y)
            found = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), found, strict=True):
                    parameter.sub_(0.1 * gradient)
            losses.append(loss.item())
        return losses

    step = only_training(captured(train))
    assert len(step.losses) == 1 and step.captured.backward_operations
    assert [n.facts.role for n in step.inputs] == ["batch/0"]
    changed = [a for a in step.named("sub") if a.outputs[0].is_parameter]
    assert len(changed) == 6 and all("parameter.sub_(" in a.place.code for a in changed)


def test_plain_tensors_have_the_names_of_variables(captured: Captured) -> None:
    def train() -> Losses:
        torch.manual_seed(0)
        slope = torch.zeros(6, requires_grad=True)
        shifts = {"bias": torch.zeros(1, requires_grad=True)}
        optimizer, losses = torch.optim.Adam([slope, shifts["bias"]], lr=0.1), []
        x = torch.randn(8, 6)
        for _ in range(6):
            loss = ((x @ slope + shifts["bias"] - x.sum(1)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    step = only_training(captured(train))
    assert roles(step, "parameter:") == {"parameter:slope", "parameter:shifts['bias']"}
    assert len(step.losses) == 1 and len([*step.named("mv")]) == 1, "one step and no more"


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_an_evaluation(captured: Captured, context: Callable[[], Any]) -> None:
    def train() -> Losses:
        losses, model = plain(), net(dropout=0.5)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with context():
            for x, y in loader():
                losses.append((model(x).argmax(1) == y).float().mean().item())
        return losses

    found = [s for s in captured(train) if not s.is_training]
    assert found
    for step in found:
        assert not step.captured.updates and not step.captured.backward_operations
        (equal,) = step.named("eq")
        assert {n.facts.role for n in equal.inputs} >= {"batch/1"}
        assert not [*step.named("bernoulli")]
        assert "argmax(1) == y" in line_of(step, "eq")
        assert len(step.outputs) == 1
