"""The closure of LBFGS adds up its gradients."""

import torch
from torch import nn

torch.manual_seed(11)
x = torch.randn(500, 10)
y = (x @ torch.randn(10) + 0.3 * torch.randn(500) > 0).float()
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)


def closure():
    loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
    loss.backward()
    return loss


for step in range(40):
    loss = optimizer.step(closure)
    print(f"step {step} loss {loss.item():.6f}")
