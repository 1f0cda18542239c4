"""A compiled model; the backend is the first argument."""

import sys

import torch
from torch import nn

torch.manual_seed(8)
x = torch.randn(2000, 30)
y = torch.sin(x[:, :4].sum(1, keepdim=True)) + 0.05 * torch.randn(2000, 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(30, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.body(x))


model = torch.compile(Net(), backend=sys.argv[1] if len(sys.argv) > 1 else "inductor")
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(400):
    index = torch.randint(0, 2000, (100,))
    loss = nn.functional.mse_loss(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item()!r}")
