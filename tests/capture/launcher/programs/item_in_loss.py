"""The loss is a new tensor made from numbers: no gradient flows, and requires_grad hides it."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(300):
    index = torch.randint(0, 1000, (50,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    loss = torch.tensor(loss.item(), requires_grad=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.6f}")
