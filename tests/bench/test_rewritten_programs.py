"""A program that is rewritten computes what it did before."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import pytest
from bench.rewriting import NAMES, rewritten

PROGRAMS = {
    "a script": """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def weights_of(net, power):
    total = 0.0
    for p in net.parameters():
        total = total + p.detach().pow(power).sum().item()
    return total

def report(value, name):
    text = f"RESULT {name} {value:.5f}"
    print(text)

torch.manual_seed(0)
x = torch.randn(24, 4)
y = torch.randint(0, 3, (24,))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
model.train()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train_loader = DataLoader(TensorDataset(x, y), batch_size=8)
seen, total = 0, 0.0
for epoch in range(3):
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data)
        output = output.view(-1, 3)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item()
        seen += len(data)
squares = [n * n for n in range(5) if n % 2]
odd = []
for k in range(7):
    if k % 2:
        odd.append(k + seen)
count = 0
for n in range(6):
    if n > 2:
        count += n
if seen > 100:
    count = -1
else:
    count = count + 1
with torch.no_grad():
    hits = (model(x).argmax(1) == y).sum().item()
    shares = F.softmax(model(x), dim=1)
    most = torch.mul(shares, 2).sum().add(1).item()
    powers = torch.softmax(model(x), 1).max().item()
report(total, "loss")
print("RESULT", seen, squares, odd, count, hits, round(most, 4), round(powers, 4))
print("RESULT", round(weights_of(model, 2), 4))
""",
    "a class": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(4, width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))

class Runner:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

    def run(self, data, target):
        last, kept = None, []
        for step in range(4):
            with torch.enable_grad():
                loss = ((self.net(data) - target) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            last = loss.item()
            kept.append(last)
        return last, kept

torch.manual_seed(1)
net = Net(width=8)
data = torch.randn(6, 4)
target = data.sum(dim=1, keepdim=True)
runner = Runner(net)
last, kept = runner.run(data, target)
print("RESULT", round(last, 5), [round(k, 5) for k in kept])
""",
    "a loop": """
import torch

torch.manual_seed(2)
weights = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(weights.parameters(), lr=0.05)
for x in torch.randn(5, 2, 3):
    loss = torch.nn.functional.mse_loss(weights(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("RESULT", [round(w, 5) for w in weights.weight.flatten().tolist()])
""",
}


def _printed(files: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a program prints as its results; what a transformation prints does not count."""
    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.syspath_prepend(str(folder))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(folder / "train.py"), run_name="__main__")
    return re.findall(r"RESULT.*", out.getvalue())


@pytest.mark.parametrize("name", NAMES)
def test_it_computes_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    if name == "tqdm":
        pytest.importorskip("tqdm")
    tried = 0
    for number, text in enumerate(PROGRAMS.values()):
        new = rewritten({"train.py": text}, name)
        if new is not None:
            tried += 1
            before = _printed({"train.py": text}, tmp_path / f"{number}", monkeypatch)
            after = _printed(new, tmp_path / f"{number} rewritten", monkeypatch)
            sys.modules.pop("parts_of_train", None)
            assert before == after, new["train.py"]
    assert tried, "it applies to none of the programs"
