"""Denoising autoencoder for ECG strips. The corruption is the task, so validation is corrupted as well,
from a generator of its own that starts anew each epoch: the score is comparable between epochs."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def strips(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 1, 96)
    rate = 2 + 2 * torch.rand(n, 1, generator=g)
    phase = (t * rate + torch.rand(n, 1, generator=g)) % 1
    qrs = torch.exp(-((phase - 0.5) / 0.03) ** 2) - 0.25 * torch.exp(-((phase - 0.58) / 0.03) ** 2)
    twave = (0.2 + 0.2 * torch.rand(n, 1, generator=g)) * torch.exp(-((phase - 0.8) / 0.06) ** 2)
    return (qrs + twave).unsqueeze(1)


def corrupt(x, generator=None):
    noise = 0.3 * torch.randn(x.shape, generator=generator)
    wander = 0.4 * torch.randn(len(x), 1, 1, generator=generator) * torch.sin(torch.linspace(0, 6.28, x.size(-1)))
    return x + noise + wander


class DAE(nn.Module):
    def __init__(self, c=24):
        super().__init__()
        self.down = nn.Sequential(nn.Conv1d(1, c, 7, 2, 3), nn.BatchNorm1d(c), nn.ReLU(), nn.Conv1d(c, c, 7, 2, 3), nn.ReLU())
        self.up = nn.Sequential(nn.ConvTranspose1d(c, c, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(c, 1, 4, 2, 1))

    def forward(self, x):
        return x - self.up(self.down(x))


def validate(model, loader):
    g = torch.Generator().manual_seed(1234)
    model.eval()
    se = ref = n = 0
    with torch.no_grad():
        for (x,) in loader:
            noisy = corrupt(x, g)
            se += (model(noisy) - x).pow(2).sum().item()
            ref += (noisy - x).pow(2).sum().item()
            n += x.numel()
    return se / n, ref / n


torch.manual_seed(0)
train = DataLoader(TensorDataset(strips(600, 1)), 32, shuffle=True)
val = DataLoader(TensorDataset(strips(150, 2)), 75)
model = DAE()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
best, keep = float("inf"), None
for epoch in range(6):
    model.train()
    for (x,) in train:
        loss = nn.functional.mse_loss(model(corrupt(x)), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    mse, before = validate(model, val)
    if mse < best:
        best = mse
        keep = {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch} val mse {mse:.4f} (noisy input {before:.4f})")
model.load_state_dict(keep)
final = copy.deepcopy(model).eval()
assert abs(validate(final, val)[0] - best) < 1e-9
