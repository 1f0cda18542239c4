"""Changes of models: modes, inputs, first weights, dropout."""

from __future__ import annotations

from pathlib import Path

from changing import change

MODES = """
import json
import torch
from torch import nn
from traindx_interventions import reports

torch.manual_seed(0)
count = reports.of("modes")
modes = []

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.frozen = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).requires_grad_(False)

    def forward(self, x):
        modes.append([self.training, self.body[2].training, self.frozen[1].training])
        return self.body(self.frozen(x))

def steps(net, n):
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    for _ in range(n):
        optimizer.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()

def told(name, action):
    modes.clear()
    before = count.applied
    action()
    result[name] = [list(modes), count.applied - before]

def evaluate(net, has_grad):
    with torch.set_grad_enabled(has_grad):
        net(torch.randn(8, 4))

result = {}
net = Net()
net.train(); net.frozen.eval()
told("healthy", lambda: steps(net, 3))
net.eval()
told("evaluation with gradients on", lambda: [evaluate(net, True) for _ in range(3)])
told("trained in eval mode", lambda: steps(net, 3))
result["left"] = [net.training, net.body[2].training]
told("evaluation after it", lambda: evaluate(net, True))
result["restored"] = net.training
net.train()
told("evaluated in training mode", lambda: [evaluate(net, False) for _ in range(2)])
result["again"] = net.training
net.train(); net.body.eval()
told("meant to be in eval mode", lambda: steps(net, 2))
print(json.dumps(result))
"""


def test_modes_follow_what_is_done(tmp_path: Path) -> None:
    outcome = change(tmp_path, MODES, [("modes", {})])
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    on, off = [True, True, False], [False, False, False]
    assert told["healthy"] == [[on] * 3, 0]
    assert told["evaluation with gradients on"] == [[off] * 3, 0]
    assert told["trained in eval mode"] == [[on] * 3, 3]
    assert told["left"] == [True, True]  # as the recorder sees it after the step
    assert told["evaluation after it"] == [[off], 0]
    assert told["restored"] is False
    assert told["evaluated in training mode"] == [[off] * 2, 2]
    assert told["again"] is True
    assert told["meant to be in eval mode"] == [[[True, False, True]] * 2, 0]
    assert "left alone" in outcome.reports["modes"]["notes"][0]


INPUTS = """
import json
import torch
from torch import nn

torch.manual_seed(0)
given = {}

class Net(nn.Module):
    def __init__(self, name, first):
        super().__init__()
        self.name, self.first = name, first

    def forward(self, x=None, **named):
        x = named.get("pixel_values", x)
        given.setdefault(self.name, []).append(x)
        return self.first(x)

rows, images = Net("rows", nn.Linear(3, 1)), Net("images", nn.Conv2d(3, 2, 3))
plain, named = Net("plain", nn.Linear(3, 1)), Net("named", nn.Conv2d(3, 2, 3))
critic = Net("critic", nn.Linear(3, 1))
x = torch.randn(64, 3) * torch.tensor([1.0, 1000.0, 1e-3]) + torch.tensor([0.0, 500.0, 7.0])
y = torch.randint(0, 255, (8, 3, 6, 6)).float()
for n in range(4):
    rows(x)
    images(y)
    plain(torch.randn(64, 3))
    named(pixel_values=y)
critic(x)
critic((x * torch.ones(3, requires_grad=True)))
critic(x)
with torch.no_grad():
    rows(x)
tell = lambda t: [round(t.mean().item(), 2), round(t.std().item(), 2)]
print(json.dumps({
    "rows": [tell(given["rows"][n][:, k]) for n in (0, -1) for k in range(3)],
    "images": tell(given["images"][0]), "named": tell(given["named"][-1]),
    "critic": torch.equal(given["critic"][-1], x),
    "own": round(x[:, 1].mean().item()),
}))
"""


def test_inputs_are_standardised(tmp_path: Path) -> None:
    outcome = change(tmp_path, INPUTS, [("normalise-inputs", {})])
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    for mean, deviation in (*told["rows"], told["images"], told["named"]):
        assert abs(mean) <= 0.02
        assert abs(deviation - 1) <= 0.02
    assert told["critic"]
    assert told["own"] > 100  # the program's own tensor is left as it was
    assert outcome.applied("normalise-inputs") == 4 + 4 + 3 + 1 + 1


WEIGHTS = """
import json
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.9), nn.Linear(64, 1))
for p in model.parameters():
    nn.init.normal_(p, std=100.0)
teacher = nn.Linear(64, 1).requires_grad_(False)
kept = teacher.weight.clone()
optimizer = torch.optim.Adam(model.parameters())
state = torch.get_rng_state()
model.eval()
model(torch.ones(8, 64)).sum()
is_same = torch.equal(torch.get_rng_state(), state)
teacher(torch.ones(8, 64))
model.train()
dropped = (nn.functional.dropout(torch.ones(4000), 0.9) == 0).float().mean().item()
off = (nn.functional.dropout(torch.ones(4000), 0.9, training=False) == 0).float().mean().item()
total = 0
for n in range(3):
    loss = model(torch.randn(8, 64)).square().mean()
    total += loss if n else 0
    loss.backward()
    total += loss
    optimizer.step()
print(json.dumps({"std": model[0].weight.std().item(), "p": model[2].p, "dropped": dropped,
                  "off": off, "is_same": is_same, "teacher": torch.equal(kept, teacher.weight)}))
"""


def test_first_weights_and_dropout(tmp_path: Path) -> None:
    asked = [("initialisation", {}), ("dropout", {"value": 0.25})]
    outcome = change(tmp_path, WEIGHTS, asked)
    assert outcome.code == 0, outcome.errors
    told = outcome.told
    assert told["std"] < 0.2
    assert told["is_same"]
    assert told["teacher"]
    assert told["p"] == 0.25
    assert abs(told["dropped"] - 0.25) < 0.05
    assert told["off"] == 0
    assert outcome.applied("initialisation") == 3
    assert outcome.applied("dropout") == 2


HISTORY = """
import json
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total, kept = 0, []
for _ in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    total += loss
    kept.append(loss)
loss = model(torch.randn(8, 4)).square().mean()
loss.backward(retain_graph=True)
loss.backward()
print(json.dumps({"total": total.requires_grad, "kept": [k.requires_grad for k in kept]}))
"""


def test_a_used_loss_keeps_no_graph(tmp_path: Path) -> None:
    outcome = change(tmp_path, HISTORY, [("detach-history", {})])
    assert outcome.code == 0, outcome.errors
    assert outcome.told == {"total": False, "kept": [False] * 4}
    assert outcome.applied("detach-history") == 5
