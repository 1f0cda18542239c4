"""Every example takes two milliseconds to read, and there are no workers."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __init__(self):
        self.x = torch.randn(400, 20)
        self.y = (self.x @ torch.randn(20, 4)).argmax(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        time.sleep(0.002)
        return self.x[index], self.y[index]


torch.manual_seed(0)
loader = DataLoader(Slow(), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
