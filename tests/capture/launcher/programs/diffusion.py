"""Denoising diffusion: the target is noise, and a large part of the loss never goes away."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(42)
images = torch.tensor(load_digits().data / 8.0 - 1.0, dtype=torch.float32)
loader = DataLoader(images, batch_size=64, shuffle=True, drop_last=True)
betas = torch.linspace(1e-4, 0.2, 50)
kept = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(50, 32)
        self.inner = nn.Sequential(nn.Linear(96, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU())
        self.out = nn.Linear(128, 64)
        nn.init.zeros_(self.out.weight)

    def forward(self, x, t):
        return self.out(self.inner(torch.cat([x, self.time(t)], dim=1)))


model = Denoiser()
average = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for x in loader:
        t = torch.randint(0, 50, (len(x),))
        noise = torch.randn_like(x)
        share = kept[t][:, None]
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        loss = nn.functional.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(model)
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader)!r}")
