"""A vector-quantised autoencoder: straight-through gradients and detached terms."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(36)
images = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
loader = DataLoader(images, batch_size=64, shuffle=True)


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
        self.codes = nn.Embedding(32, 8)
        nn.init.uniform_(self.codes.weight, -0.3, 0.3)
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        z = self.encoder(x)
        chosen = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
        commitment = nn.functional.mse_loss(z, chosen.detach())
        codebook = nn.functional.mse_loss(chosen, z.detach())
        out = self.decoder(z + (chosen - z).detach())
        return out, codebook + 0.25 * commitment


model = VQ()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for x in loader:
        out, extra = model(x)
        loss = nn.functional.mse_loss(out, x) + extra
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item()!r}")
