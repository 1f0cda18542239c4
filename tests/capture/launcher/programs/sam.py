"""Sharpness-aware minimisation: every step climbs first, clears, and goes through the batch again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **settings):
        super().__init__(params, {"rho": rho, **settings})
        self.base = base(self.param_groups, **settings)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        grads = [
            p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None
        ]
        scale = self.param_groups[0]["rho"] / (torch.stack(grads).norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["climb"] = p.grad * scale
                    p.add_(self.state[p]["climb"])
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if "climb" in self.state[p]:
                    p.sub_(self.state[p]["climb"])
        self.base.step()
        self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError


torch.manual_seed(31)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
for epoch in range(8):
    for batch_x, batch_y in loader:
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.first_step()
        nn.functional.cross_entropy(model(batch_x), batch_y).backward()
        optimizer.second_step()
    print(f"epoch {epoch} loss {loss.item()!r}")
