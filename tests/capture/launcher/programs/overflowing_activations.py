"""Residual blocks that each triple the signal, forty of them: the activations overflow."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, 64)
        self.blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(40))
        for block in self.blocks:
            nn.init.normal_(block.weight, std=1.5)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x)


x = torch.randn(1000, 16)
y = (x @ torch.randn(16, 3)).argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    index = torch.randint(0, 1000, (50,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.6f}")
