"""Full-batch logistic regression with LBFGS."""

import torch
from torch import nn

torch.manual_seed(11)
x = torch.randn(500, 10)
y = (x @ torch.randn(10) + 0.3 * torch.randn(500) > 0).float()
model = nn.Linear(10, 1)
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=10, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
    loss = loss + 1e-3 * model.weight.pow(2).sum()
    loss.backward()
    return loss


for step in range(12):
    loss = optimizer.step(closure)
    print(f"step {step} loss {loss.item()!r}")
