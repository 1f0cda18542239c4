"""Sound programs that rules once accused; the answer of the room behind each was wrong."""

from __future__ import annotations

import pytest

from traindx.diagnosis.engine import diagnose
from traindx.examples import make_run

IMPORTS = """
import copy
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
"""
ADAPTERS = """
class Adapter(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.up = nn.Parameter(torch.zeros(linear.out_features, linear.in_features))
    def forward(self, x):
        return self.linear(x) + x @ self.up.T

net = copy.deepcopy(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3)))
for i in (0, 2):
    net[i] = Adapter(net[i])
optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad])
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(net(torch.randn(8, 20)), y).backward()
    optimizer.step()
"""
MODES_WRITTEN_BACK = """
def sampled(model, x):
    before = {m: m.training for m in model.modules()}
    model.eval()
    with torch.no_grad():
        mean = model(x)
    for m, mode in before.items():
        m.training = mode
    return mean

model = nn.Sequential(nn.Linear(8, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
model.train()
for epoch in range(12):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(sampled(model, held_out))
"""
LAST_LAYER_TUNED = """
encoder = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 10))
encoder.requires_grad_(False)
encoder[-1].requires_grad_(True)
encoder.eval()
optimizer = torch.optim.AdamW([p for p in encoder.parameters() if p.requires_grad])
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(encoder(x), y).backward()
    optimizer.step()
"""
ADADELTA = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for x, y in train_loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
FOCAL = """
model = nn.Linear(8, 5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for x, tags in train_loader:
    logits = model(x)
    each = F.binary_cross_entropy_with_logits(logits, tags, reduction="none")
    with torch.no_grad():
        hard = (tags - logits.sigmoid()).abs() ** 2
    optimizer.zero_grad()
    (hard * each).mean().backward()
    optimizer.step()
"""
SHIFTED_WINDOWS = """
def chunks(stream, length):
    usable = (len(stream) - 1) // length * length
    return stream[:usable].view(-1, length), stream[1 : usable + 1].view(-1, length)

xs, ys = chunks(torch.randint(0, 50, (20_000,)), 32)
print(xs.shape, ys.shape)
"""
TWO_TRAININGS = """
def scans(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=g)
    x = torch.randn(n, 16, generator=g) + (y.float() / classes).unsqueeze(1)
    return TensorDataset(x, y)

@torch.no_grad()
def accuracy(model, data):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(data, batch_size=128))
    return hits / len(data)

def fit(model, data, held_out, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        model.train()
        for x, y in DataLoader(data, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(accuracy(model, data), accuracy(model, held_out))

fit(nn.Linear(16, 8), scans(800, 8, 0), scans(200, 8, 1), epochs=6)
fit(nn.Linear(16, 5), scans(160, 5, 2), scans(300, 5, 3), epochs=9)
"""
PROGRAMS = {
    "layers of a chain are replaced by adapters": ADAPTERS,
    "modes are written back by hand": MODES_WRITTEN_BACK,
    "the last layer of a frozen encoder is tuned": LAST_LAYER_TUNED,
    "Adadelta at its usual rate": ADADELTA,
    "a loss weighted by how sure a model is": FOCAL,
    "inputs and targets as shifted windows": SHIFTED_WINDOWS,
    "two trainings, each scored on its training data as well": TWO_TRAININGS,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sound_program_is_not_accused(name: str) -> None:
    diagnosis = diagnose(make_run(sources={"train.py": IMPORTS + PROGRAMS[name]}))
    assert [(h.cause, h.findings[0].claim) for h in diagnosis.root_causes] == []
