"""The training scenarios this project grew from, run for real: broken, diagnosed, patched, run again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from traindx import diagnose, open_run

NOT_LEARNING = """
import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
train_loader = DataLoader(
    TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.01)

for epoch in range(10):
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()

        if batch_idx % 10 == 0:
            print(f"Epoch {epoch}, Loss: {loss.item():.4f}")
"""


def run(folder: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    (folder / "train.log").write_text(done.stdout)
    return [float(v) for v in re.findall(r"[Ll]oss:? ([\d.]+|nan|inf)", done.stdout)]


def test_scenario_2_a_loss_that_stays_at_chance(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NOT_LEARNING)
    stuck = run(tmp_path)
    assert min(stuck) > 2.0
    found = diagnose(open_run(tmp_path))
    cause = found.root_causes[0]
    assert cause.cause == "missing-optimizer-step" and cause.confidence > 0.9
    line = NOT_LEARNING.split("\n").index("        loss.backward()") + 1
    assert cause.location is not None and cause.location.line == line
    patch = cause.remedies[0].patch
    assert patch is not None
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    learning = run(tmp_path)
    assert learning[-1] < 0.5
    (tmp_path / "train.log").write_text("")
    again = diagnose(open_run(tmp_path / "train.py"))
    assert again.root_causes == ()


DIVERGING = """
import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr={lr})
weights = torch.randn(20, 1)
for step in range(300):
    x = 3 * torch.randn(32, 20)
    loss = ((model(x) - x @ weights) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {{step}} loss {{loss.item():.4f}}")
"""


def test_scenario_4_a_loss_that_becomes_nan(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DIVERGING.format(lr=0.1))
    assert run(tmp_path)[-1] != run(tmp_path)[-1], "the run ends in NaN"
    cause = diagnose(open_run(tmp_path)).root_causes[0]
    assert cause.cause == "lr-too-high"
    assert "0.1" in cause.remedies[0].change and "0.05" in cause.remedies[0].change


def test_the_same_source_without_a_symptom_is_not_accused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DIVERGING.format(lr=0.1))
    assert diagnose(open_run(tmp_path / "train.py")).root_causes == ()
    (tmp_path / "train.py").write_text(DIVERGING.format(lr=0.001))
    run(tmp_path)
    assert diagnose(open_run(tmp_path)).root_causes == ()
