"""Denoising diffusion on the two-moons points, with a moving average of the weights."""

import copy
import os
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm

T = 50


class SinusoidalEmbedding(nn.Module):
    def __init__(self, size, scale=25.0):
        super().__init__()
        self.size = size
        self.scale = scale

    def forward(self, t):
        half = self.size // 2
        freqs = torch.exp(-np.log(10000.0) * torch.arange(half) / (half - 1))
        args = self.scale * t[:, None] / T * freqs[None, :]
        return torch.cat([torch.sin(args), torch.cos(args)], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, hidden=96, emb=32):
        super().__init__()
        self.time_emb = SinusoidalEmbedding(emb)
        self.input = nn.Linear(2 + emb, hidden)
        self.layers = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.output = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.input(torch.cat([x, self.time_emb(t)], dim=-1))
        for layer in self.layers:
            h = h + layer(F.silu(h))
        return self.output(F.silu(h))


class NoiseScheduler:
    def __init__(self, steps=T, beta_start=1e-3, beta_end=0.15):
        self.betas = torch.linspace(beta_start, beta_end, steps)
        self.alphas = 1.0 - self.betas
        self.alphas_cumprod = torch.cumprod(self.alphas, dim=0)

    def add_noise(self, x0, noise, t):
        a = self.alphas_cumprod[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def step(self, eps, t, x):
        beta, alpha, abar = self.betas[t], self.alphas[t], self.alphas_cumprod[t]
        mean = (x - beta / (1 - abar).sqrt() * eps) / alpha.sqrt()
        if t == 0:
            return mean
        return mean + beta.sqrt() * torch.randn_like(x)


class EMA:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval()
        self.shadow.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters(), strict=True):
            s.lerp_(p, 1 - self.decay)


@torch.no_grad()
def sample(model, scheduler, n):
    x = torch.randn(n, 2)
    for t in reversed(range(T)):
        eps = model(x, torch.full((n,), t))
        x = scheduler.step(eps, t, x)
    return x


def energy_distance(a, b):
    within = torch.cdist(a, a).mean() + torch.cdist(b, b).mean()
    return (2 * torch.cdist(a, b).mean() - within).item()


def load_points(n, seed):
    points, _ = make_moons(n, noise=0.05, random_state=seed)
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    return torch.tensor(points, dtype=torch.float32)


def main(num_epochs=40, batch_size=128, lr=2e-3):
    seed = int(os.environ.get("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    dataset = TensorDataset(load_points(2048, seed))
    held_out = load_points(512, seed + 1000)
    dataloader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)

    model = Denoiser()
    ema = EMA(model)
    scheduler = NoiseScheduler()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    for epoch in tqdm(range(num_epochs), desc="Training", mininterval=0.5):
        model.train()
        losses = []
        for (x0,) in dataloader:
            noise = torch.randn_like(x0)
            t = torch.randint(0, T, (x0.shape[0],))
            noisy = scheduler.add_noise(x0, noise, t)
            pred = model(noisy, t)
            loss = F.mse_loss(pred, noise)

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ema.update(model)
            losses.append(loss.item())
        if epoch % 5 == 0 or epoch == num_epochs - 1:
            distance = energy_distance(sample(ema.shadow, scheduler, 512), held_out)
            tqdm.write(
                f"epoch {epoch:3d}: noise mse = {np.mean(losses):.4f}, "
                f"sample distance = {distance:.4f}"
            )

    Path("checkpoints").mkdir(exist_ok=True)
    torch.save({"model": model.state_dict(), "ema": ema.shadow.state_dict()}, "checkpoints/last.pt")


if __name__ == "__main__":
    main()
