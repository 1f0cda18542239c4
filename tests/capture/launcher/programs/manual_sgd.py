"""Gradient descent by hand: no optimizer, no module."""

import torch

torch.manual_seed(26)
x = torch.randn(800, 10)
y = torch.tanh(x @ torch.randn(10, 1))
w1 = (torch.randn(10, 32) / 10**0.5).requires_grad_()
b1 = torch.zeros(32, requires_grad=True)
w2 = (torch.randn(32, 1) / 32**0.5).requires_grad_()
b2 = torch.zeros(1, requires_grad=True)
for step in range(400):
    index = torch.randint(0, 800, (50,))
    out = torch.relu(x[index] @ w1 + b1) @ w2 + b2
    loss = ((out - y[index]) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w1, b1, w2, b2):
            p -= 0.1 * p.grad
            p.grad = None
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r}")
