import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from data import FixedPairs, PatchAugment, SliceDataset, phantom

SEED, PATCH, NOISE = 17, 24, 0.15


class ResidualDenoiser(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, ch, 3, padding=1), nn.ReLU(), nn.Conv2d(ch, ch, 3, padding=1), nn.ReLU(),
                                  nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x):
        return x - self.body(x)


def run():
    torch.manual_seed(SEED)
    gen = np.random.default_rng(SEED)
    slices = [phantom(gen) for _ in range(160)]
    train_set = SliceDataset(slices[:128], PatchAugment(PATCH, NOISE, seed=SEED))
    val_set = FixedPairs(slices[128:], PATCH, NOISE, seed=SEED + 1)
    train_loader = DataLoader(train_set, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    val_loader = DataLoader(val_set, batch_size=32)
    model = ResidualDenoiser()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(3):
        model.train()
        for noisy, clean in train_loader:
            loss = nn.functional.mse_loss(model(noisy), clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        total = 0.0
        with torch.no_grad():
            for noisy, clean in val_loader:
                total += nn.functional.mse_loss(model(noisy), clean, reduction="sum").item()
        mse = total / (len(val_set) * PATCH * PATCH)
        print(f"epoch {epoch} psnr {-10 * np.log10(mse):.2f} dB")


if __name__ == "__main__":
    run()
