"""A small set learnt by heart: the loss goes to nearly nothing and the gradients with it."""

import torch
from torch import nn

torch.manual_seed(40)
x = torch.randn(40, 20)
y = torch.randint(0, 3, (40,))
model = nn.Sequential(
    nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(400):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r}")
