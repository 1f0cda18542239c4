"""2x super resolution of small textures."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from amp_tools import MixedPrecision


def textures(n, seed, size=16):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 1, size), indexing="ij")
    k = 2 + 8 * torch.rand(n, 2, 1, 1, generator=g)
    ph = 6.28 * torch.rand(n, 1, 1, generator=g)
    img = 0.5 + 0.5 * torch.sin(k[:, 0] * 6.28 * xx / 4 + k[:, 1] * 6.28 * yy / 4 + ph)
    return img.unsqueeze(1)


class Upscale(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, w, 3, padding=1), nn.PReLU(), nn.Conv2d(w, w, 3, padding=1), nn.PReLU(),
                                 nn.Conv2d(w, 4, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, low):
        base = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return base + self.net(low)


class SuperResTrainer:
    def __init__(self, device):
        self.device = device
        self.net = Upscale().to(device)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        self.amp = MixedPrecision(device)

    def step(self, high):
        high = high.to(self.device, non_blocking=True)
        low = F.avg_pool2d(high, 2)
        self.opt.zero_grad(set_to_none=True)
        with self.amp.autocast():
            loss = F.l1_loss(self.net(low), high)
        self.amp.backward(loss)
        self.amp.apply(self.opt, self.net.parameters(), max_norm=1.0)
        return loss.detach()

    @torch.no_grad()
    def psnr(self, loader):
        self.net.eval()
        se, n = 0.0, 0
        for (high,) in loader:
            high = high.to(self.device)
            with self.amp.autocast():
                out = self.net(F.avg_pool2d(high, 2))
            se += (out.float().clamp(0, 1) - high).pow(2).sum().item()
            n += high.numel()
        self.net.train()
        return -10 * math.log10(se / n)


if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(TensorDataset(textures(512, 1)), 32, shuffle=True)
    test = DataLoader(TensorDataset(textures(128, 2)), 64)
    trainer = SuperResTrainer(device)
    for epoch in range(4):
        losses = torch.stack([trainer.step(high) for (high,) in train])
        print(f"epoch {epoch}  l1 {losses.mean():.4f}  psnr {trainer.psnr(test):.2f} dB")
