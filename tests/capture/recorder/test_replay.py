"""The first bad step of real training scripts is replayed and its operation and line are named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))
from riding import Ride  # noqa: E402

START = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
loader = DataLoader(data, batch_size=8)
"""


def ride(tmp_path, text, **names):
    one = Ride()
    names = one.run(tmp_path / "train.py", START + text, **names)
    assert one.told is not None, "no bad step"
    json.dumps(one.told)
    return one.told, names


def check(told, marker, text, **expected):
    assert {key: told[key] for key in expected} == expected, told
    line = next(i for i, row in enumerate((START + text).split("\n"), 1) if marker in row)
    assert told["place"]["line"] == line, told
    assert told["place"]["file"].endswith("train.py")
    assert marker in told["place"]["code"]


LOG_OF_SOFTMAX = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        h = self.body(x)
        p = torch.softmax(self.head(h) * scale, -1)
        return torch.log(p)

scale = 1.0
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    if step == 2:
        scale = 1000.0
    x = x * 2
    optimizer.zero_grad()
    out = model(x)
    loss = -(out * F.one_hot(y, 3)).sum(-1).mean()
    print("loss", loss.item())
    loss.backward()
    if not torch.isfinite(loss):
        break
    optimizer.step()
"""


def test_log_of_zero_in_the_model(tmp_path, capsys):
    told, names = ride(tmp_path, LOG_OF_SOFTMAX)
    check(
        told,
        "return torch.log(p)",
        LOG_OF_SOFTMAX,
        seen_in="loss",
        phase="forward",
        op="log",
        module="",
        module_type="Net",
        is_exact=True,
        why="the smallest input of log is 0",
    )
    assert told["inputs"][0]["low"] == 0
    assert told["place"]["function"] == "forward"
    assert capsys.readouterr().out.count("loss") == 3  # the replay prints nothing
    assert int(names["model"].body[1].num_batches_tracked) == 3


def test_a_replay_leaves_no_trace(tmp_path):
    text = LOG_OF_SOFTMAX.replace("        break\n", "        pass\n")
    _, with_replay = ride(tmp_path, text)
    path = tmp_path / "alone.py"
    path.write_text(START + text)
    alone = {"__name__": "__main__"}
    exec(compile(START + text, str(path), "exec"), alone)
    ours, theirs = with_replay["model"].state_dict(), alone["model"].state_dict()
    assert all(torch.equal(ours[n].nan_to_num(9), theirs[n].nan_to_num(9)) for n in theirs)


SQRT_IN_LOSS = """
def distance(a, b):
    gap = (a - b).sum(-1)
    return torch.sqrt(gap).mean()

def train():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        x, y = batch
        with torch.autocast("cpu", enabled=False):
            prediction = model(x)
            loss = distance(prediction, x)
        optimizer.zero_grad()
        (loss / 2).backward()
        return

train()
"""


def test_root_of_a_negative_number_in_the_loss(tmp_path):
    told, _ = ride(tmp_path, SQRT_IN_LOSS)
    check(
        told,
        "return torch.sqrt(gap).mean()",
        SQRT_IN_LOSS,
        phase="loss",
        op="sqrt",
        module="",
        is_exact=True,
    )
    assert told["why"].startswith("sqrt of a negative number: -")


OVERWRITTEN = """
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
head = nn.Linear(3, 3)
for i, (x, y) in enumerate(loader):
    x = x * 2000
    x = model(x)
    x = torch.exp(x.abs())
    x = head(x / x.sum(-1, keepdim=True))
    loss = F.cross_entropy(x, y)
    loss.backward()
    break
"""


def test_a_name_that_is_overwritten_step_by_step(tmp_path):
    told, _ = ride(tmp_path, OVERWRITTEN)
    check(told, "x = torch.exp(x.abs())", OVERWRITTEN, phase="loss", op="exp", is_exact=True)
    assert "exp overflows float32 above 88.7" in told["why"]


FULLY_MASKED = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("causal", torch.full((4, 4), float("-inf")).triu(1))

    def forward(self, x, keep):
        scores = self.q(x) @ self.k(x).transpose(-1, -2) + self.causal
        scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return weights @ x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.head = nn.Linear(4, 3)

    def forward(self, x, keep):
        return self.head(self.attention(x, keep).mean(1))

model = Net()
for x, y in loader:
    tokens = x[:, :, None] * torch.ones(4)
    keep = torch.ones(8, 4, dtype=torch.bool)
    keep[3, :] = bad_row
    loss = F.cross_entropy(model(tokens, keep), y)
    loss.backward()
    break
"""


def test_fully_masked_row(tmp_path):
    told, _ = ride(tmp_path, FULLY_MASKED, bad_row=False)
    check(
        told,
        "weights = F.softmax(scores, dim=-1)",
        FULLY_MASKED,
        phase="forward",
        op="softmax",
        module="attention",
        module_type="Attention",
        is_exact=True,
    )
    assert told["why"] == "4 of 32 rows of softmax are all -inf: all is masked"


def test_a_mask_is_not_blamed_for_what_comes_after(tmp_path):
    text = FULLY_MASKED.replace("return weights @ x", "return torch.log(weights @ x * 0)")
    told, _ = ride(tmp_path, text, bad_row=True)
    check(told, "return torch.log(", text, phase="forward", op="log", module="attention")


BAD_DATA = """
data.tensors[0][11, 2] = float("nan")
model = nn.Linear(4, 3)
for x, y in loader:
    loss = F.cross_entropy(model((x - 0.5) / 2), y)
    loss.backward()
    if not torch.isfinite(loss):
        break
"""


def test_nan_in_the_data(tmp_path):
    told, _ = ride(tmp_path, BAD_DATA)
    assert (told["phase"], told["op"], told["is_exact"]) == ("data", "", True)
    assert told["inputs"][0]["name"] == "0"
    assert told["why"].startswith("tensor 0 of the batch has 1 values that are not finite")
    assert "first at [3, 2] (row 3; 1 of 8 rows" in told["why"]


PREPARED = """
model = nn.Linear(4, 3)
for x, y in loader:
    x = x.clamp(5, 5)
    x = (x - x.mean(0)) / x.std(0)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    break
"""


def test_data_that_is_spoiled_before_the_model(tmp_path):
    told, _ = ride(tmp_path, PREPARED)
    assert (told["phase"], told["op"], told["is_exact"]) == ("data", "div", True)
    assert told["place"]["code"] == "x = (x - x.mean(0)) / x.std(0)"
    assert told["why"] == "0 divided by 0"


BAD_WEIGHTS = """
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    if not torch.isfinite(loss):
        break
    optimizer.step()
    with torch.no_grad():
        model[1].weight.mul_(float("inf"))
"""


def test_weights_that_were_bad_before(tmp_path):
    told, _ = ride(tmp_path, BAD_WEIGHTS)
    assert (told["phase"], told["parameter"], told["is_exact"]) == ("weights", "1.weight", True)


GRADIENT_OF_SQRT = """
class Scale(nn.Module):
    def forward(self, x):
        size = (x * 0).pow(2).sum(-1).sqrt()
        return x + size[:, None]

model = nn.Sequential(nn.Linear(4, 3), Scale())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
total = 0.0
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(output, y)
    loss.backward()
    total += loss.item()
    before = [p.grad.clone() for p in model.parameters()]
    optimizer.step()
    break
"""


def test_gradient_that_is_not_finite(tmp_path):
    told, names = ride(tmp_path, GRADIENT_OF_SQRT)
    check(
        told,
        ".sqrt()",
        GRADIENT_OF_SQRT,
        seen_in="gradient",
        phase="backward",
        op="sqrt",
        module="1",
        module_type="Scale",
        parameter="0.weight",
        is_exact=True,
        why="the slope of sqrt is infinite at 0, and it was at 0",
    )
    for parameter, before in zip(names["model"].parameters(), names["before"]):  # noqa: B905
        assert torch.equal(parameter.grad.isnan(), before.isnan())


CLASSES = """
class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.seen = 0
        self.history = []

    def loss_of(self, batch):
        self.seen += 1
        x, y = batch
        out = self.model(x)
        return (1 / (out - out)).mean()

    def fit(self):
        for epoch in range(1):
            for batch in loader:
                losses = []
                loss = self.loss_of(batch)
                losses.append(loss)
                self.history.append(loss.item())
                total = sum(losses)
                self.optimizer.zero_grad()
                total.backward()
                return self.seen

trainer = Trainer()
seen = trainer.fit()
"""


def test_a_trainer_of_the_users(tmp_path):
    told, names = ride(tmp_path, CLASSES)
    check(
        told,
        "return (1 / (out - out)).mean()",
        CLASSES,
        op="reciprocal",
        phase="loss",
        is_exact=True,
    )
    assert names["seen"] == names["trainer"].seen == 1
    assert len(names["trainer"].history) == 1


CLOSURE = """
model = nn.Linear(4, 3)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
x, y = next(iter(loader))

def closure():
    optimizer.zero_grad()
    out = model(x)
    loss = torch.log(out - out).mean()
    loss.backward()
    return loss

optimizer.step(closure)
"""


def test_closure(tmp_path):
    told, _ = ride(tmp_path, CLOSURE)
    check(
        told, "loss = torch.log(out - out).mean()", CLOSURE, op="log", phase="loss", is_exact=True
    )


CARRIED = """
cell = nn.RNNCell(4, 4)
h = torch.zeros(8, 4)
for x, y in loader:
    h = cell(x, h.detach())
    loss = torch.log(h.mean() * 0)
    loss.backward()
    break
"""


def test_state_that_is_carried_on_falls_back_to_the_graph(tmp_path):
    told, _ = ride(tmp_path, CARRIED)
    assert (told["phase"], told["op"], told["is_exact"]) == ("loss", "log", False)
    assert told["place"]["code"] == "loss = torch.log(h.mean() * 0)"


EFFECTS = """
model = nn.Linear(4, 3)
counts = torch.zeros(1)
drawn = []

def draw():
    drawn.append(1)
    return torch.randn(8, 4)

class Counting(nn.Module):
    def forward(self, out):
        change(counts)
        return out.log()

counting = Counting()
for _ in range(1):
    x = draw()
    out = model(x)
    loss = counting(out * 0).mean()
    loss.backward()
"""


def add(counts):
    counts.add_(1)


def add_to_view(counts):
    counts.detach().view(-1)[0] += 1


@pytest.mark.parametrize("change", [add, add_to_view])
def test_nothing_outside_is_changed(tmp_path, change):
    told, names = ride(tmp_path, EFFECTS, change=change)
    assert names["counts"].item() == 1
    assert names["drawn"] == [1]
    assert told["op"] in {"log", ""}  # the replay stops before it changes a tensor of the user's


def test_keyboard_interrupt_passes_through(tmp_path):
    text = """
class Net(nn.Module):
    def forward(self, x):
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        return x.log()

calls = []
layer = nn.Linear(4, 1)
net = nn.Sequential(layer, Net())
for x, y in loader:
    loss = net(x * 0 - 1e9).sum()
    loss.backward()
"""
    state = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        ride(tmp_path, text)
    assert sys.stdout is not None and not hasattr(sys.stdout, "_thread")
    torch.set_rng_state(state)


def test_minus_infinity_of_a_logarithm_is_not_a_mask(tmp_path):
    text = """
model = nn.Linear(4, 3)
for x, y in loader:
    scores = torch.log(model(x) * 0)
    loss = F.cross_entropy(scores, y)
    loss.backward()
    break
"""
    told, _ = ride(tmp_path, text)
    check(told, "scores = torch.log(model(x) * 0)", text, op="log", phase="loss", is_exact=True)


def test_logarithm_of_a_mask_is_a_mask(tmp_path):
    text = """
model = nn.Linear(4, 3)
keep = torch.ones(8, 3)
keep[5] = 0
for x, y in loader:
    weights = torch.softmax(model(x) + keep.log(), -1)
    loss = F.nll_loss(weights, y)
    loss.backward()
    break
"""
    told, _ = ride(tmp_path, text)
    check(told, "weights = torch.softmax(", text, op="softmax", phase="loss", is_exact=True)
    assert told["why"] == "1 of 8 rows of softmax are all -inf: all is masked"


WEIGHT_THAT_IS_NO_NUMBER = """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weights = [1.0, 1.0, float("nan")]
for weight, (x, y) in zip(weights, loader):
    optimizer.zero_grad()
    loss = weight * F.cross_entropy(model(x), y)
    loss.backward()
    if not torch.isfinite(loss):
        break
    optimizer.step()
"""


def test_a_number_that_came_from_outside(tmp_path):
    told, _ = ride(tmp_path, WEIGHT_THAT_IS_NO_NUMBER)
    why = "a number that mul is given is nan, one that was computed outside of torch"
    check(told, "loss = weight", WEIGHT_THAT_IS_NO_NUMBER, seen_in="loss", op="mul", why=why)


OWN_GENERATORS = """
import random
import numpy

mine = numpy.random.default_rng(0)
plain = random.Random(0)

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.own = torch.Generator().manual_seed(0)

    def forward(self, x):
        noise = torch.rand(x.shape, generator=self.own) + mine.random() + plain.random()
        return self.layer(x + 0.01 * noise)

model = Noisy()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y) / (0.0 if step == 2 else 1.0)
    before = model.own.get_state(), mine.bit_generator.state, plain.getstate()
    loss.backward()
    after = model.own.get_state(), mine.bit_generator.state, plain.getstate()
    if step == 2:
        break
    optimizer.step()
"""


def test_a_replay_draws_from_nobodys_generator(tmp_path):
    _, names = ride(tmp_path, OWN_GENERATORS)
    (torches, numpys, plains), after = names["before"], names["after"]
    assert torches.equal(after[0])
    assert (numpys, plains) == after[1:]
