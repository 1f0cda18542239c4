"""Training goes well for some epochs; then a probability reaches zero and its logarithm is taken."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centers = 6 * torch.randn(4, 10)
labels = torch.randint(0, 4, (1000,))
features = centers[labels] + torch.randn(1000, 10)
loader = DataLoader(TensorDataset(features, labels), batch_size=50, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 64)
        self.fc2 = nn.Linear(64, 4)

    def forward(self, x):
        return torch.softmax(self.fc2(torch.relu(self.fc1(x))), dim=1)


def entropy_loss(probabilities, target):
    picked = probabilities.gather(1, target.unsqueeze(1))
    entropy = -(probabilities * torch.log(probabilities)).sum(1)
    return -torch.log(picked + 1e-8).mean() + 0.01 * entropy.mean()


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = entropy_loss(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.6f}")
