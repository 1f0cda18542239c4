"""Residual CNN that removes noise from small scans; mixed precision on CUDA, plain on CPU."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 4
    batch: int = 16
    accumulate: int = 2
    lr: float = 2e-3
    clip: float = 1.0
    sigma: float = 0.25
    seed: int = 28


class Phantoms(Dataset):
    def __init__(self, n, seed, sigma):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
        c = torch.rand(n, 3, 4, generator=g)
        img = torch.zeros(n, 32, 32)
        for k in range(3):
            cx, cy, r, v = (c[:, k, i].view(-1, 1, 1) for i in range(4))
            img += (0.3 + 0.7 * v) * torch.sigmoid(20 * (0.15 + 0.4 * r - ((xx - 2 * cx + 1) ** 2 + (yy - 2 * cy + 1) ** 2).sqrt()))
        self.clean = img.clamp(0, 1).unsqueeze(1)
        self.noisy = self.clean + sigma * torch.randn(self.clean.shape, generator=g)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]


class Denoiser(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        self.noise = nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x):
        return x - self.noise(x)


def psnr(model, loader, device, amp):
    model.eval()
    err = torch.zeros((), device=device)
    n = 0
    with torch.inference_mode(), torch.autocast(device.type, dtype=torch.float16, enabled=amp):
        for noisy, clean in loader:
            out = model(noisy.to(device))
            err += (out.float() - clean.to(device)).square().sum()
            n += clean.numel()
    return (10 * torch.log10(1 / (err / n))).item()


def main(cfg: Config):
    torch.manual_seed(cfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    amp = device.type == "cuda"
    train = DataLoader(Phantoms(256, 0, cfg.sigma), cfg.batch, shuffle=True, drop_last=True)
    val = DataLoader(Phantoms(64, 1, cfg.sigma), 32)
    model = Denoiser().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    updates = cfg.epochs * -(-len(train) // cfg.accumulate)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=updates, eta_min=1e-5)
    scaler = torch.amp.GradScaler(device.type, enabled=amp)

    for epoch in range(cfg.epochs):
        model.train()
        opt.zero_grad(set_to_none=True)
        for i, (noisy, clean) in enumerate(train, 1):
            noisy, clean = noisy.to(device, non_blocking=True), clean.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.float16, enabled=amp):
                out = model(noisy)
            loss = nn.functional.l1_loss(out.float(), clean)
            first = (i - 1) // cfg.accumulate * cfg.accumulate
            scaler.scale(loss / min(cfg.accumulate, len(train) - first)).backward()
            if i % cfg.accumulate and i < len(train):
                continue
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            before = scaler.get_scale()
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
            if scaler.get_scale() >= before:
                sched.step()
        print(f"epoch {epoch} loss {loss.item():.4f} psnr {psnr(model, val, device, amp):.2f} dB lr {sched.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main(Config())
