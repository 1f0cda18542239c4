"""The loss stays at log(10) for ten epochs: the optimizer never steps."""

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = torch.randn(10, 64)
labels = torch.randint(0, 10, (640,))
images = centres[labels] + 0.5 * torch.randn(640, 64)
train_loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.001)

for epoch in range(10):
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()

        if batch_idx % 5 == 0:
            print(f"Epoch {epoch}, Loss: {loss.item():.4f}")
