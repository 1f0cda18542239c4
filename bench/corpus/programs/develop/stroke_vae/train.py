import os

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(int(os.environ.get("SEED", "0")))

latent_dim = 8
beta = 0.5
epochs = 12
batch_size = 64


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.to_mu = nn.Linear(48, latent)
        self.to_logvar = nn.Linear(48, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, 64))

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar


def elbo_terms(recon, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(recon, x, reduction="sum") / len(x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(x)
    return rec, kl


images = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
dataset = TensorDataset(images)
train_set, test_set = random_split(dataset, [1500, len(dataset) - 1500])
train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
test_loader = DataLoader(test_set, batch_size=len(test_set))

model = VAE(latent_dim)
optimizer = optim.Adam(model.parameters(), lr=2e-3)

print(f"{'epoch':>5} {'recon':>9} {'kl':>9} {'total':>9} {'test_recon':>10}")
for epoch in range(epochs):
    model.train()
    sums = [0.0, 0.0, 0.0]
    for (x,) in train_loader:
        recon, mu, logvar = model(x)
        rec, kl = elbo_terms(recon, x, mu, logvar)
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for k, value in enumerate((rec, kl, loss)):
            sums[k] += value.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        for (x,) in test_loader:
            recon, mu, logvar = model(x)
            test_recon, _ = elbo_terms(recon, x, mu, logvar)
    print(f"{epoch:5d} {sums[0]:9.3f} {sums[1]:9.3f} {sums[2]:9.3f} {test_recon.item():10.3f}")

torch.save(model.state_dict(), "vae.pth")
