"""A distance of exactly zero: the value is fine, its gradient is not."""

import torch
from torch import nn

torch.manual_seed(0)
anchors = torch.randn(400, 10)
positives = anchors + 0.1 * torch.randn(400, 10)
positives[:30] = anchors[:30]
encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)


def distance(a, b):
    return ((a - b) ** 2).sum(1).sqrt()


for step in range(200):
    index = torch.randint(30, 400, (32,)) if step < 60 else torch.randint(0, 400, (32,))
    negative = torch.randint(0, 400, (32,))
    anchor = encoder(anchors[index])
    near = distance(anchor, encoder(positives[index]))
    far = distance(anchor, encoder(anchors[negative] + 0.5))
    loss = torch.relu(near - far + 1.0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item():.6f}")
