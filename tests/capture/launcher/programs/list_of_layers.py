"""Hidden layers in a plain list: the optimizer never hears of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(20, 64)
        self.hidden = [nn.Linear(64, 64) for _ in range(3)]
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
