import tempfile
from pathlib import Path

import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from cohort import read_cohort, write_cohort

torch.manual_seed(1)

with tempfile.TemporaryDirectory() as tmp:
    write_cohort(Path(tmp))
    scans, stages = read_cohort(Path(tmp))

tr_x, va_x, tr_y, va_y = train_test_split(scans, stages, test_size=0.25, stratify=stages, random_state=1)
mu, sd = tr_x.mean(), tr_x.std()


def as_set(x, y):
    return TensorDataset(torch.from_numpy((x - mu) / sd).unsqueeze(1), torch.from_numpy(y))


train_loader = DataLoader(as_set(tr_x, tr_y), batch_size=30, shuffle=True)
val_loader = DataLoader(as_set(va_x, va_y), batch_size=100)


class StageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 6 * 6, 3)

    def forward(self, x):
        h = nn.functional.avg_pool2d(torch.relu(self.conv(x)), 2)
        return self.fc(h.flatten(1))


net = StageNet()
optim = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(10):
    net.train()
    for x, y in train_loader:
        optim.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optim.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch} loss {loss.item():.3f} val acc {right / len(va_y):.3f}")
