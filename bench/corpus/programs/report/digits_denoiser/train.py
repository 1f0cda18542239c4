# Denoising autoencoder on the 8x8 digits
# (started as a notebook, cells marked with %%)

# %% imports / constants
import copy
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
np.random.seed(SEED)
torch.manual_seed(SEED)

EPOCHS = 14
BATCH = 64
LR = 3e-3
MIN_LR = 3e-5
WARMUP = 40
SIGMA = 0.35         # std of the corruption, pixels live in [0, 1]
EMA_DECAY = 0.99

# %% data
X = load_digits().images.astype(np.float32) / 16.0
perm = np.random.RandomState(42).permutation(len(X))      # same split for every seed
X_tr, X_va = X[perm[360:]], X[perm[:360]]
X_tr = torch.tensor(X_tr).unsqueeze(1)
X_va = torch.tensor(X_va).unsqueeze(1)

# validation noise is drawn once so PSNR is comparable between epochs (and runs)
noise_gen = torch.Generator().manual_seed(123)
X_va_noisy = X_va + SIGMA * torch.randn(X_va.shape, generator=noise_gen)

train_dl = DataLoader(TensorDataset(X_tr), batch_size=BATCH, shuffle=True)
valid_dl = DataLoader(TensorDataset(X_va_noisy, X_va), batch_size=256)


# %% model
class DenoisingAE(nn.Module):
    def __init__(self, hidden=256, latent=32):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, latent),
        )
        self.dec = nn.Sequential(
            nn.Linear(latent, hidden), nn.LayerNorm(hidden), nn.GELU(),
            nn.Linear(hidden, 64),
            nn.Unflatten(1, (1, 8, 8)),
        )

    def forward(self, x):
        return torch.sigmoid(self.dec(self.enc(x)))


net = DenoisingAE()
ema_net = copy.deepcopy(net).eval()
for p in ema_net.parameters():
    p.requires_grad_(False)

# no decay on biases and norms
decay = [p for p in net.parameters() if p.ndim > 1]
no_decay = [p for p in net.parameters() if p.ndim <= 1]
opt = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 1e-3}, {"params": no_decay, "weight_decay": 0.0}], lr=LR
)
total_steps = EPOCHS * len(train_dl)


def lr_at(step):
    """linear warmup, then half a cosine down to MIN_LR"""
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    frac = (step - WARMUP) / max(1, total_steps - WARMUP)
    return MIN_LR + 0.5 * (LR - MIN_LR) * (1 + math.cos(math.pi * frac))


@torch.no_grad()
def update_ema(step):
    d = min(EMA_DECAY, (1 + step) / (10 + step))     # quicker at the beginning
    for pe, p in zip(ema_net.parameters(), net.parameters()):
        pe.lerp_(p, 1 - d)


def psnr(pred, clean):
    mse = (pred - clean).pow(2).flatten(1).mean(1).clamp_min(1e-10)
    return -10 * torch.log10(mse)


@torch.no_grad()
def evaluate(model):
    model.eval()
    sq, scores = 0.0, []
    for noisy, clean in valid_dl:
        out = model(noisy)
        sq += F.mse_loss(out, clean, reduction="sum").item()
        scores.append(psnr(out, clean))
    return sq / X_va.numel(), torch.cat(scores).mean().item()


# %% train
print(f"{len(X_tr)} train / {len(X_va)} valid images, {total_steps} steps")
print(f"PSNR of the noisy input: {psnr(X_va_noisy.clamp(0, 1), X_va).mean():.2f} dB, "
      f"untrained net: {evaluate(net)[1]:.2f} dB")

step = 0
for epoch in range(EPOCHS):
    net.train()
    total, seen = 0.0, 0
    for (clean,) in train_dl:
        for g in opt.param_groups:
            g["lr"] = lr_at(step)
        noisy = clean + SIGMA * torch.randn_like(clean)
        loss = F.mse_loss(net(noisy), clean)

        loss.backward()
        opt.step()
        opt.zero_grad()
        update_ema(step)

        step += 1
        total += loss.item() * len(clean)
        seen += len(clean)

    if epoch % 2 == 1 or epoch == 0:
        va_loss, va_psnr = evaluate(net)
        _, ema_psnr = evaluate(ema_net)
        print(f"epoch {epoch + 1:3d}  lr {opt.param_groups[0]['lr']:.5f}  train mse {total / seen:.5f}  "
              f"valid mse {va_loss:.5f}  psnr {va_psnr:.2f}  ema psnr {ema_psnr:.2f}")

# %% final
torch.save({"model": net.state_dict(), "ema": ema_net.state_dict(),
            "optimizer": opt.state_dict(), "epoch": EPOCHS, "step": step}, "checkpoint.pt")
final_loss, final_psnr = evaluate(ema_net)
print(f"Final (EMA weights): valid mse {final_loss:.5f}, final PSNR = {final_psnr:.2f} dB")
