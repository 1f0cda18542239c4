"""LSGAN (Mao et al. 2017), conditional, on 8x8 digits."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(0)
Z, K, BS = 16, 10, 64

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
labels = torch.tensor(digits.target)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Embedding(K, 16)
        self.fc = nn.Linear(Z + 16, 64 * 2 * 2)
        self.up = nn.Sequential(
            nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, z, y):
        h = self.fc(torch.cat([z, self.cls(y)], dim=1))
        return self.up(h.view(-1, 64, 2, 2))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            spectral_norm(nn.Conv2d(1, 32, 4, 2, 1)), nn.LeakyReLU(0.2),
            spectral_norm(nn.Conv2d(32, 64, 4, 2, 1)), nn.LeakyReLU(0.2),
            nn.Flatten(),
        )
        self.fc = spectral_norm(nn.Linear(64 * 4, 1))
        self.cls = nn.Embedding(K, 64 * 4)

    def forward(self, x, y):
        h = self.conv(x)
        return self.fc(h) + (self.cls(y) * h).sum(1, keepdim=True) / 16


G, D = Generator(), Critic()
opt_g = torch.optim.Adam(G.parameters(), lr=4e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=4e-4, betas=(0.5, 0.999))
mse = nn.MSELoss()


def sample_real(n):
    idx = torch.randint(len(images), (n,))
    return images[idx], labels[idx]


for it in range(1, 601):
    real, y = sample_real(BS)
    fake = G(torch.randn(BS, Z), y)

    d_real, d_fake = D(real, y), D(fake.detach(), y)
    loss_d = 0.5 * (mse(d_real, torch.ones_like(d_real)) + mse(d_fake, torch.zeros_like(d_fake)))
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    out = D(fake, y)
    loss_g = 0.5 * mse(out, torch.ones_like(out))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if it % 150 == 0:
        G.eval()
        with torch.no_grad():
            means = torch.stack([G(torch.randn(64, Z), torch.full((64,), c)).mean(0) for c in range(K)])
            true = torch.stack([images[labels == c].mean(0) for c in range(K)])
        G.train()
        print(f"{it}: D {loss_d.item():.3f} G {loss_g.item():.3f} class-mean error {(means - true).abs().mean():.3f}")
