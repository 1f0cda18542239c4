"""Adapt a small regressor from domain A to domain B with low-rank updates only."""
import copy

import torch
from torch import nn

from lora import LoRALinear, inject, trainable


class Backbone(nn.Module):
    def __init__(self, d=12, h=48):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc2 = nn.Linear(h, h)
        self.fc3 = nn.Linear(h, 1)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x))))).squeeze(-1)


def domain(n, shift, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    y = torch.sin(x[:, 0] + shift) + x[:, 1] * (0.5 - shift) + 0.1 * torch.randn(n, generator=g)
    return x, y


def fit(model, params, data, epochs, lr):
    x, y = data
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            nn.functional.mse_loss(model(x[idx]), y[idx]).backward()
            opt.step()
    return model


@torch.no_grad()
def mse(model, data):
    model.eval()
    return nn.functional.mse_loss(model(data[0]), data[1]).item()


def main():
    torch.manual_seed(31)
    base = Backbone()
    fit(base, base.parameters(), domain(1500, 0.0, 1), epochs=15, lr=3e-3)
    test_a, test_b = domain(300, 0.0, 2), domain(300, 1.2, 3)
    print(f"base     A {mse(base, test_a):.3f}  B {mse(base, test_b):.3f}")

    adapted = inject(copy.deepcopy(base), r=4, alpha=8.0)
    n_train = sum(p.numel() for p in trainable(adapted))
    n_all = sum(p.numel() for p in adapted.parameters())
    print(f"training {n_train} of {n_all} parameters")
    fit(adapted, trainable(adapted), domain(600, 1.2, 4), epochs=25, lr=5e-3)
    print(f"adapted  A {mse(adapted, test_a):.3f}  B {mse(adapted, test_b):.3f}")

    for name, layer in list(adapted.named_children()):
        if isinstance(layer, LoRALinear):
            setattr(adapted, name, layer.merge())
    print(f"merged   B {mse(adapted, test_b):.3f}")


if __name__ == "__main__":
    main()
