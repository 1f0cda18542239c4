"""Adversarial training with a fault each; the first argument chooses."""

import sys

import torch
from torch import nn

torch.manual_seed(10)
fault = sys.argv[1]
data = torch.randn(2000, 2) @ torch.tensor([[1.0, 0.6], [0.0, 0.8]]) + torch.tensor([2.0, -1.0])
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
owner = discriminator if fault == "wrong-owner" else generator
optimizer_g = torch.optim.Adam(owner.parameters(), lr=1e-3, betas=(0.5, 0.999))

for step in range(400):
    real = data[torch.randint(0, 2000, (64,))]
    fake = generator(torch.randn(64, 4))
    loss_d = criterion(discriminator(real), torch.ones(64, 1))
    loss_d = loss_d + criterion(discriminator(fake.detach()), torch.zeros(64, 1))
    optimizer_d.zero_grad()
    loss_d.backward()
    optimizer_d.step()

    if fault == "detached":
        fake = fake.detach()
    loss_g = criterion(discriminator(fake), torch.ones(64, 1))
    optimizer_g.zero_grad()
    loss_g.backward()
    if fault != "no-step":
        optimizer_g.step()
    if step % 25 == 0:
        print(f"step {step} d {loss_d.item():.6f} g {loss_g.item():.6f}")
