"""The model is built anew after the optimizer was made."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(20, hidden)
        self.fc2 = nn.Linear(hidden, 4)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = Net(32)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model = Net(64)  # a larger one does better
for epoch in range(12):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
