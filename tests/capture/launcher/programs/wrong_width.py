"""The second layer expects 64 features and is given 128."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 128)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(32, 20), torch.randint(0, 10, (32,))
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
print(f"loss {loss.item():.6f}")
