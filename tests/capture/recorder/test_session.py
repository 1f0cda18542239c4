"""The recorder inside a process: what it writes for real small trainings, and what it leaves."""

from __future__ import annotations

import gc
import json
import pickle
import signal
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.data import DataLoader, TensorDataset

from traindx.capture import recorder
from traindx.capture.recorder import discovery
from traindx.capture.recorder.session import Session

Records = dict[str, list[dict[str, Any]]]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[[Callable[[], None]], Records]]:
    """Run a training under the recorder and return its records by kind."""
    sessions: list[Session] = []

    def run(train: Callable[[], None]) -> Records:
        session = recorder.start(str(tmp_path), overhead=1.0)
        sessions.append(session)
        try:
            train()
        finally:
            session.finish()
            assert session.hooks is not None
            session.hooks.remove()
        return read(tmp_path)

    yield run
    for session in sessions:
        assert session.hooks is not None
        session.hooks.remove()


def read(folder: Path) -> Records:
    found: Records = {}
    for path in folder.glob("rank*.jsonl"):
        for line in path.read_text().splitlines():
            item = json.loads(line)
            found.setdefault(item["k"], []).append(item)
    return found


def make_data(count: int = 256, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, 8, generator=generator)
    return x, x[:, :classes].argmax(1)


def make_net(*tail: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4), *tail)


class Training:
    """A loop with places to put a fault."""

    def __init__(self, net: nn.Module | None = None, **faults: bool) -> None:
        self.x, self.y = make_data()
        self.net = net or make_net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.faults = faults
        self.losses: list[float] = []

    def __call__(self) -> None:
        loader = DataLoader(TensorDataset(self.x, self.y), batch_size=32, shuffle=True)
        for _ in range(2):
            self.net.train()
            for x, y in loader:
                self.step(x, y)
            self.net.eval()
            with torch.no_grad():
                self.net(self.x)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> None:
        if not self.faults.get("keeps_gradients"):
            self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        if self.faults.get("clears_gradients"):
            self.optimizer.zero_grad()
        if not self.faults.get("never_steps"):
            self.optimizer.step()
        self.losses.append(loss.item())


def test_a_healthy_training_is_told_step_by_step(record: Any) -> None:
    training = Training()
    told = record(training)
    losses = [x for block in told["steps"] for x in block["loss"]]
    assert losses == pytest.approx(training.losses)
    assert told["steps"][0]["optimizer"][0] == 0
    sample = told["sample"][-1]
    assert sample["is_training"] is True
    assert sample["carried"] is False and sample["cleared"] is False
    assert all(sample["has_moved"])
    assert sample["losses"][0]["loss"] == "cross_entropy"
    assert sample["losses"][0]["classes"] == 4
    assert sum(sample["losses"][0]["labels"].values()) == 32
    assert sample["place"]["function"] == "step"
    assert told["loader"][0]["sampler"] == "RandomSampler"
    assert [e["batches"] for e in told["epoch"]] == [8, 8]
    assert told["counts"][-1]["is_end"] and told["counts"][-1]["steps"] == 16


def test_gradient_and_weight_norms_are_those_of_plain_autograd(record: Any) -> None:
    training = Training()
    seen: list[list[float]] = []
    step = training.optimizer.step

    def noting() -> None:
        seen.append([float(p.grad.norm()) for p in training.net.parameters() if p.grad is not None])
        step()

    training.optimizer.step = noting  # type: ignore[method-assign,assignment]
    told = record(training)
    for sample in told["sample"]:
        assert sample["grad_norms"] == pytest.approx(seen[sample["step"]], rel=1e-5)


def test_losses_are_the_same_with_and_without(record: Any) -> None:
    plain = Training()
    torch.manual_seed(1)
    plain()
    watched = Training()
    torch.manual_seed(1)
    record(watched)
    assert watched.losses == plain.losses


def test_gradients_that_are_kept_are_noticed(record: Any) -> None:
    told = record(Training(keeps_gradients=True))
    assert [s["carried"] for s in told["sample"][1:]] == [True] * (len(told["sample"]) - 1)


def test_gradients_that_are_cleared_too_early_are_noticed(record: Any) -> None:
    told = record(Training(clears_gradients=True))
    assert all(s["cleared"] for s in told["sample"])


def test_a_run_without_steps_tells_its_losses_and_that_nothing_moved(record: Any) -> None:
    training = Training(never_steps=True)
    told = record(training)
    assert told["counts"][-1]["steps"] == 0
    assert told["counts"][-1]["backwards"] == 16
    assert told["counts"][-1]["has_moved"] is False
    losses = [x for block in told["steps"] for x in block["loss"]]
    assert losses == pytest.approx(training.losses)


def test_a_softmax_below_the_loss_is_named(record: Any) -> None:
    told = record(Training(make_net(nn.Softmax(-1))))
    assert {s["losses"][0]["producer"] for s in told["sample"]} == {"softmax"}


def test_evaluation_is_told_with_its_mode(record: Any) -> None:
    told = record(Training())
    assert told["evaluation"][0]["is_training"] is False
    assert told["evaluation"][0]["forwards"] == 1
    assert told["evaluation"][0]["live"] == []


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_column_against_a_row_is_seen_in_the_graph(record: Any, by_hand: bool) -> None:
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = make_data()

    def train() -> None:
        for _ in range(3):
            optimizer.zero_grad()
            difference = net(x) - y.float()
            if by_hand:
                loss = (difference**2).mean()
            else:
                with pytest.warns(UserWarning):
                    loss = F.mse_loss(net(x), y.float())
            loss.backward()
            optimizer.step()

    told = record(train)
    assert told["sample"][0]["losses"][0]["broadcast"] == [[256, 1], [256], [256, 256]]


def test_dead_units_are_counted_per_unit_also_in_functional_code(record: Any) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(8, 10), nn.Linear(10, 4)
            with torch.no_grad():
                self.first.bias[:5] = -100.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(F.relu(self.first(x)))  # type: ignore[no-any-return]

    told = record(Training(Net()))
    relu = next(a for a in told["sample"][0]["activations"] if a["op"] == "relu")
    assert relu["name"] == "first"
    assert relu["dead"] == pytest.approx(0.5)


def test_two_optimizers_keep_their_losses_apart(record: Any) -> None:
    nets = [nn.Linear(8, 1), nn.Linear(8, 1)]
    optimizers = [torch.optim.SGD(n.parameters(), lr=0.01) for n in nets]
    x, _ = make_data()

    def train() -> None:
        for _ in range(4):
            for number, (net, optimizer) in enumerate(zip(nets, optimizers, strict=True)):
                optimizer.zero_grad()
                (net(x) - 10.0 * number).pow(2).mean().backward()
                optimizer.step()

    told = record(train)
    by_optimizer: dict[int, list[float]] = {}
    for block in told["steps"]:
        for number, loss in zip(block["optimizer"], block["loss"], strict=True):
            by_optimizer.setdefault(number, []).append(loss)
    assert len(by_optimizer) == 2
    assert sorted(max(v) > 50 for v in by_optimizer.values()) == [False, True]


def test_accumulated_losses_add_up_and_a_closure_counts_once(record: Any) -> None:
    net = nn.Linear(8, 1)
    x, _ = make_data()
    accumulated: list[float] = []

    def train() -> None:
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(2):
            sgd.zero_grad()
            parts = [(net(part) - 1).pow(2).mean() / 4 for part in x.split(64)]
            accumulated.append(sum(p.item() for p in parts))
            for part in parts:
                part.backward()
            sgd.step()

    told = record(train)
    assert told["steps"][0]["micro"][0] == 4
    losses = [x for block in told["steps"] for x in block["loss"]]
    assert losses == pytest.approx(accumulated)


def test_a_closure_counts_its_first_loss(record: Any) -> None:
    net = nn.Linear(8, 1)
    x, _ = make_data()
    first: list[float] = []

    def train() -> None:
        lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5)

        def closure() -> torch.Tensor:
            lbfgs.zero_grad()
            loss = (net(x) - x[:, :1]).pow(2).mean()
            loss.backward()
            return loss

        for _ in range(2):
            first.append(lbfgs.step(closure).item())  # type: ignore[union-attr]

    told = record(train)
    assert [x for block in told["steps"] for x in block["loss"]] == pytest.approx(first)


def test_the_clipped_norm_is_told_as_it_was_before_clipping(record: Any) -> None:
    net = nn.Linear(8, 1)
    x, _ = make_data()
    norms: list[float] = []

    def train() -> None:
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(3):
            sgd.zero_grad()
            (net(x) - 100).pow(2).mean().backward()
            norms.append(float(torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)))
            sgd.step()

    told = record(train)
    assert [x for b in told["steps"] for x in b["clip_norm"]] == pytest.approx(norms)
    assert told["steps"][0]["clip_max"][0] == 1.0


def test_the_loss_of_a_scaler_is_told_unscaled(record: Any) -> None:
    net = nn.Linear(8, 1)
    x, _ = make_data()
    losses: list[float] = []

    def train() -> None:
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(3):
            sgd.zero_grad()
            loss = (net(x) - 1).pow(2).mean()
            losses.append(loss.item())
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()

    told = record(train)
    assert [x for b in told["steps"] for x in b["loss"]] == pytest.approx(losses)
    assert told["steps"][0]["scale"][0] == 1024.0


def test_an_example_that_comes_with_another_label_is_noticed(record: Any) -> None:
    net = make_net()
    x, y = make_data(64)

    def train() -> None:
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for epoch in range(6):
            shifted = (y + epoch) % 4
            for xb, yb in DataLoader(TensorDataset(x, shifted), batch_size=64):
                sgd.zero_grad()
                F.cross_entropy(net(xb), yb).backward()
                sgd.step()

    told = record(train)
    assert sum(s["relabelled"] for s in told["sample"]) > 0
    healthy = record(Training())
    assert sum(s["relabelled"] for s in healthy["sample"][len(told["sample"]) :]) == 0


def test_an_error_of_ours_ends_the_recording_and_nothing_else(
    record: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object) -> None:
        raise ValueError("a bug of ours")

    monkeypatch.setattr("traindx.capture.recorder.graph_probe.losses", fail)
    training = Training()
    told = record(training)
    assert len(training.losses) == 16
    assert "a bug of ours" in told["counts"][-1]["why_off"]
    assert capsys.readouterr().err.count("traindx") == 1
    assert torch.autograd.backward.__module__ == "torch.autograd"
    assert not training.net._forward_pre_hooks


def test_everything_is_left_as_it_was(record: Any) -> None:
    before = (torch.autograd.backward, DataLoader.__iter__, torch.nn.utils.clip_grad_norm_)
    training = Training()
    record(training)
    after = (torch.autograd.backward, DataLoader.__iter__, torch.nn.utils.clip_grad_norm_)
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert not training.net._forward_pre_hooks


def test_a_first_loss_that_is_no_number_is_replayed_once(record: Any) -> None:
    net = nn.Linear(8, 1)
    x, _ = make_data()

    def train() -> None:
        sgd = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(3):
            sgd.zero_grad()
            loss = torch.log(F.relu(net(x) - 1000.0)).mean()
            loss.backward()
            sgd.step()

    told = record(train)
    assert len(told["nonfinite"]) == 1
    assert told["nonfinite"][0]["op"] == "log"
    assert "torch.log" in told["nonfinite"][0]["place"]["code"]


def test_an_exception_of_a_signal_handler_is_the_programs_own(
    record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alarm(number: int, frame: object) -> None:
        raise TimeoutError("the program's own alarm")

    def ring(*args: object) -> list[Any]:
        signal.raise_signal(signal.SIGUSR1)
        return []

    before = signal.signal(signal.SIGUSR1, alarm)
    monkeypatch.setattr("traindx.capture.recorder.graph_probe.losses", ring)
    try:
        with pytest.raises(TimeoutError, match="own alarm"):
            record(Training())
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Have new tensors made on another device than the training is on."""
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@pytest.mark.usefixtures("elsewhere")
def test_where_new_tensors_go_is_the_users_business(record: Callable[..., Records]) -> None:
    with torch.device("cpu"):
        x, y = make_data()
        model = make_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for step in range(6):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[step::6]), y[step::6])
            (loss if step < 5 else loss / 0.0).backward()
            optimizer.step()

    records = record(train)
    assert [r["why_off"] for r in records["counts"]][-1] == ""
    assert records["sample"][-1]["repeated"] == 0
    assert [r["seen_in"] for r in records["nonfinite"]] == ["loss"]
    assert records["nonfinite"][0]["why"].startswith("div by 0")


@pytest.mark.parametrize("ask", ["locals()", "vars()"])
def test_what_a_program_asked_of_its_names_is_left_alone(
    record: Callable[..., Records], ask: str
) -> None:
    kept: list[dict[str, Any]] = []

    def train() -> None:
        rate, width = 0.1, 8
        settings = locals() if ask == "locals()" else vars()
        kept.append(settings)
        model = make_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        model(torch.ones(2, width)).sum().backward()
        optimizer.step()

    records = record(train)
    assert [set(settings) for settings in kept] == [{"rate", "width", "kept", "ask"}]
    assert records["model"] and records["optimizer"]


class Batch(NamedTuple):
    items: torch.Tensor
    labels: torch.Tensor


class Trap:
    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


STRANGE = {
    "a field of that name": lambda: Batch(torch.ones(2, 8), torch.zeros(2).long()),
    "an object that refuses": lambda: [torch.ones(2, 8), Trap()],
    "examples of several lengths": lambda: [
        torch.ones(2, 8),
        torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(3, 8)]),
        torch.zeros(2).long(),
    ],
    "complex labels": lambda: [torch.ones(2, 8), torch.ones(2, dtype=torch.complex64)],
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", STRANGE)
def test_strange_batches_are_recorded_as_far_as_they_go(
    record: Callable[..., Records], name: str
) -> None:
    def train() -> None:
        model = make_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in DataLoader([STRANGE[name]() for _ in range(3)], batch_size=None):
            optimizer.zero_grad()
            model(batch[0]).sum().backward()
            optimizer.step()

    records = record(train)
    assert records["counts"][-1]["why_off"] == ""
    assert records["sample"][-1]["batch"][0]["shape"] == [2, 8]


class Shuffling(torch.utils.data.Sampler[list[int]]):
    """A sampler that does work where it is asked for its length, and notes that it was."""

    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        return 2

    def __iter__(self) -> Iterator[list[int]]:
        yield from ([0, 1], [2, 3])


def test_code_of_the_user_is_not_run_to_count_batches(record: Callable[..., Records]) -> None:
    sampler = Shuffling()

    def train() -> None:
        model = make_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = TensorDataset(torch.ones(4, 8))
        for (x,) in DataLoader(data, batch_sampler=sampler):
            model(x).sum().backward()
            optimizer.step()

    records = record(train)
    assert [r["batches"] for r in records["loader"]] == [None]
    assert [r["batches"] for r in records["epoch"]] == [2]
    assert sampler.asked == 0


def test_models_are_not_kept_alive(record: Callable[..., Records]) -> None:
    references: list[weakref.ref[nn.Module]] = []

    def train() -> None:
        for _ in range(3):
            model = make_net(nn.BatchNorm1d(4))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                model(torch.ones(2, 8)).sum().backward()
                optimizer.step()
            references.extend(weakref.ref(part) for part in model.modules())
        del model, optimizer
        gc.collect()
        assert [r() for r in references if r() is not None] == []

    record(train)
    assert len(references) > 6


def test_a_model_that_is_traced_has_nothing_of_ours(record: Callable[..., Records]) -> None:
    traced: list[Any] = []

    def train() -> None:
        model = make_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        model.eval()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            traced.append(torch.jit.trace(model, torch.ones(2, 8)))
            traced.append(torch.fx.symbolic_trace(nn.Sequential(model)))
            traced.append(make_fx(model)(torch.ones(2, 8)))

    assert record(train)["counts"][-1]["why_off"] == ""
    calls = [n.target for n in traced[1].graph.nodes if n.op.startswith("call_")]
    assert "items" not in calls
    assert "std" not in str(traced[2].code)


def test_an_optimizer_for_every_parameter_is_not_searched_for_at_every_step(
    record: Callable[..., Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    search = discovery.discover

    def counted(*args: Any) -> Any:
        searches.append(1)
        return search(*args)

    monkeypatch.setattr(discovery, "discover", counted)

    def train() -> None:
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(20)))
        optimizers = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]
        for _ in range(10):
            model(torch.ones(2, 4)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()

    assert record(train)["counts"][-1]["why_off"] == ""
    assert len(searches) < 10


def test_the_attributes_of_an_argument_are_not_the_names_of_a_function() -> None:
    def of_arguments(options: object) -> object:
        return vars(options)

    def of_nothing() -> object:
        return vars()

    def neither() -> int:
        return 1

    found = [discovery._asks_for_locals(f.__code__) for f in (of_arguments, of_nothing, neither)]
    assert found == [False, True, False]


def test_a_clipping_function_stays_one_under_its_two_names(record: Callable[..., Records]) -> None:
    def train() -> None:
        assert torch.nn.utils.clip_grad_norm_ is torch.nn.utils.clip_grad.clip_grad_norm_
        pickle.dumps(torch.nn.utils.clip_grad_norm_)

    record(train)
