"""A small DCGAN on digits: two networks, two optimizers."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True, drop_last=True)

generator = nn.Sequential(
    nn.ConvTranspose2d(16, 32, 4, bias=False),
    nn.BatchNorm2d(32),
    nn.ReLU(True),
    nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    nn.Conv2d(1, 32, 4, stride=2, padding=1),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(32, 1, 4),
    nn.Flatten(),
)


def init(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)


generator.apply(init)
discriminator.apply(init)
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))

for epoch in range(8):
    for (real,) in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        discriminator.zero_grad()
        loss_real = criterion(discriminator(real), ones)
        loss_real.backward()
        fake = generator(torch.randn(len(real), 16, 1, 1))
        loss_fake = criterion(discriminator(fake.detach()), zeros)
        loss_fake.backward()
        optimizer_d.step()

        generator.zero_grad()
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()
    print(f"epoch {epoch} d {(loss_real + loss_fake).item()!r} g {loss_g.item()!r}")
