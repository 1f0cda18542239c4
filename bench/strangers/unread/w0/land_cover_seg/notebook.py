# %% [markdown]
# # Land cover from 5 spectral bands - baseline
# Tiles are synthetic for now, real ones come with the next release.

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2024)
rng = np.random.RandomState(2024)
CLASSES = ["water", "forest", "field", "urban"]
K = len(CLASSES)
PRIOR = [0.1, 0.25, 0.5, 0.15]

# %%
signatures = rng.randn(K, 5)


def make_tile(side=24, block=6):
    coarse = rng.choice(K, size=(side // block, side // block), p=PRIOR)
    mask = np.kron(coarse, np.ones((block, block), dtype=int))
    bands = signatures[mask] + 1.2 * rng.randn(side, side, 5)
    return bands.transpose(2, 0, 1), mask


tiles = [make_tile() for _ in range(120)]
X = torch.tensor(np.stack([t[0] for t in tiles]), dtype=torch.float32)
Y = torch.tensor(np.stack([t[1] for t in tiles]), dtype=torch.long)
Xtr, Ytr, Xva, Yva = X[:90], Y[:90], X[90:], Y[90:]
mean, std = Xtr.mean((0, 2, 3), keepdim=True), Xtr.std((0, 2, 3), keepdim=True)
Xtr, Xva = (Xtr - mean) / std, (Xva - mean) / std

# %%
net = nn.Sequential(
    nn.Conv2d(5, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
    nn.Conv2d(24, 24, 3, padding=2, dilation=2), nn.BatchNorm2d(24), nn.ReLU(),
    nn.Conv2d(24, K, 1),
)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=8)


# %%
class IoU:
    def __init__(self, k):
        self.k = k
        self.table = torch.zeros(k, k, dtype=torch.long)

    def add(self, logits, target):
        pred = logits.argmax(1).flatten()
        idx = target.flatten() * self.k + pred
        self.table += torch.bincount(idx, minlength=self.k**2).view(self.k, self.k)

    def per_class(self):
        inter = self.table.diag().float()
        truth = self.table.sum(1).float()
        found = self.table.sum(1).float()
        return inter / (truth + found - inter).clamp(min=1)


# %%
for epoch in range(8):
    net.train()
    order = torch.randperm(len(Xtr))
    running = 0.0
    for idx in order.split(10):
        loss = F.cross_entropy(net(Xtr[idx]), Ytr[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(idx)
    sched.step()
    net.eval()
    score = IoU(K)
    with torch.no_grad():
        for i in range(0, len(Xva), 10):
            score.add(net(Xva[i:i + 10]), Yva[i:i + 10])
    iou = score.per_class()
    print(f"{epoch}: loss {running / len(Xtr):.4f}  mIoU {iou.mean():.4f}  "
          + " ".join(f"{c}={v:.3f}" for c, v in zip(CLASSES, iou)))

# %%
torch.save({"net": net.state_dict(), "mean": mean, "std": std}, "landcover.pt")
