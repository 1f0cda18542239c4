import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    epochs: int = 5
    batch_size: int = 32
    lr: float = 1e-3
    max_norm: float = 1.0
    loss_scale: float = 2.0 ** 16
    seed: int = 1


def waves(n, gen):
    t = torch.linspace(0, 6.28, 128)
    freq = torch.randint(1, 6, (n, 1), generator=gen)
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    clean = torch.sin(freq * t + phase).unsqueeze(1)
    return clean + 0.4 * torch.randn(clean.shape, generator=gen), clean


class Denoiser(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.inp = nn.Conv1d(1, c, 9, padding=4)
        self.mid = nn.ModuleList([nn.Conv1d(c, c, 9, padding=4) for _ in range(3)])
        self.out = nn.Conv1d(c, 1, 9, padding=4)

    def forward(self, x):
        h = torch.relu(self.inp(x))
        for layer in self.mid:
            h = h + torch.relu(layer(h))
        return x - self.out(h)


class MixedPrecision:
    """Bundles autocast, scaling, clipping and the update behind two methods."""

    def __init__(self, device, cfg):
        self.device = device
        self.cfg = cfg
        self.scaler = torch.amp.GradScaler(device, init_scale=cfg.loss_scale)

    def context(self):
        return torch.autocast(self.device, dtype=torch.float16)

    def apply(self, loss, optimizer, params):
        optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(params, self.cfg.max_norm)
        self.scaler.step(optimizer)
        self.scaler.update(self.cfg.loss_scale)
        return norm


def validate(model, loader, device):
    model.eval()
    total = n = 0
    with torch.no_grad():
        for noisy, clean in loader:
            noisy, clean = noisy.to(device), clean.to(device)
            total += nn.functional.mse_loss(model(noisy), clean, reduction="sum").item()
            n += clean.numel()
    return total / n


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--lr", type=float, default=Settings.lr)
    args = parser.parse_args()
    cfg = Settings(epochs=args.epochs, lr=args.lr)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    train = DataLoader(TensorDataset(*waves(640, gen)), batch_size=cfg.batch_size, shuffle=True)
    val = DataLoader(TensorDataset(*waves(128, gen)), batch_size=64)

    model = Denoiser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    amp = MixedPrecision(device, cfg)
    for epoch in range(cfg.epochs):
        model.train()
        for noisy, clean in train:
            noisy, clean = noisy.to(device), clean.to(device)
            with amp.context():
                pred = model(noisy)
            loss = nn.functional.mse_loss(pred.float(), clean)
            norm = amp.apply(loss, optimizer, model.parameters())
        print(f"epoch {epoch} loss {loss.item():.4f} grad {norm:.3f} "
              f"scale {amp.scaler.get_scale():.0f} val {validate(model, val, device):.4f}")


if __name__ == "__main__":
    main()
