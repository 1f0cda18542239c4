"""DDPM on point clouds (chairs, 2048 points), single GPU, fp16."""
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset

T = 1000
betas = torch.linspace(1e-4, 0.02, T)
alpha_bar = torch.cumprod(1 - betas, 0)


class Clouds(Dataset):
    def __init__(self, root, split):
        self.files = sorted(Path(root, split).glob("*.npy"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        pts = np.load(self.files[i]).astype(np.float32)
        pts = pts[np.random.choice(len(pts), 2048, replace=False)]
        pts -= pts.mean(0)
        return torch.from_numpy(pts / np.abs(pts).max())


def time_embedding(t, dim=128):
    half = dim // 2
    freq = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    ang = t.float()[:, None] * freq
    return torch.cat([ang.sin(), ang.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, d=256, layers=6, heads=8):
        super().__init__()
        self.inp = nn.Linear(3, d)
        self.temb = nn.Sequential(nn.Linear(128, d), nn.SiLU(), nn.Linear(d, d))
        enc = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(enc, layers)
        self.out = nn.Linear(d, 3)

    def forward(self, x, t):
        h = self.inp(x) + self.temb(time_embedding(t))[:, None]
        return self.out(self.body(h))


def diffusion_loss(net, x0, ab):
    t = torch.randint(0, T, (x0.size(0),), device=x0.device)
    eps = torch.randn_like(x0)
    a = ab[t].view(-1, 1, 1)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * eps
    return F.mse_loss(net(xt, t).float(), eps)


@torch.no_grad()
def validation(net, loader, ab, device):
    net.eval()
    total = 0.0
    for x0 in loader:
        with autocast():
            total += diffusion_loss(net, x0.to(device), ab).item()
    net.train()
    return total / len(loader)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    train = DataLoader(Clouds("shapenet/chair", "train"), 32, shuffle=True, num_workers=8, drop_last=True, pin_memory=True)
    val = DataLoader(Clouds("shapenet/chair", "val"), 32, num_workers=4)
    net = Denoiser().to(device)
    ab = alpha_bar.to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-4, weight_decay=0.01)
    scaler = GradScaler()
    accum = 2

    net.train()
    step = 0
    for epoch in range(400):
        for i, x0 in enumerate(train):
            x0 = x0.to(device, non_blocking=True)
            with autocast():
                loss = diffusion_loss(net, x0, ab) / accum
            scaler.scale(loss).backward()
            if (i + 1) % accum:
                continue
            grad_norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.unscale_(opt)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            step += 1
            if step % 500 == 0:
                print(f"step {step} loss {loss.item() * accum:.4f} grad {grad_norm.item():.3f}")
        # leftovers of an odd number of batches
        opt.zero_grad(set_to_none=True)
        if epoch % 10 == 0:
            print(f"== epoch {epoch} val {validation(net, val, ab, device):.4f}")
            torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "scaler": scaler.state_dict()}, "last.pt")


if __name__ == "__main__":
    main()
