"""The running loss keeps the graph of every step since the beginning."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(4000, 100)
y = (x @ torch.randn(100, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(100, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
total = 0
for epoch in range(5):
    for step, (batch_x, batch_y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        total += loss
        if step % 40 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.6f}")
print(f"mean {total.item() / (5 * len(loader)):.6f}")
