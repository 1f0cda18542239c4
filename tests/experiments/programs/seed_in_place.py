"""A dropout written by hand changes the output of the activation in place."""

import torch
from torch import nn

torch.manual_seed(0)


class CustomModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(128, 256)
        self.dropout_rate = 0.5
        self.fc2 = nn.Linear(256, 128)

    def forward(self, x):
        x = self.fc1(x)
        x = torch.relu(x)
        if self.training:
            mask = torch.rand_like(x) > self.dropout_rate
            x *= mask
            x /= 1 - self.dropout_rate
        x = self.fc2(x)
        return x


model = CustomModel()
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.randn(32, 128)
target = 0.5 * inputs.roll(1, dims=1)
for step in range(60):
    optimizer.zero_grad()
    output = model(inputs)
    loss = nn.functional.mse_loss(output, target)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f}")
