# %% [markdown]
# # Forest cover style data: embeddings + MLP, mixed precision
# (exported from the notebook I use on the T4 machine)

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 2
np.random.seed(SEED)
torch.manual_seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"
use_amp = device == "cuda"

# %% data: two categorical columns, six numeric ones, four cover types
n = 3000
soil = np.random.randint(0, 12, n)
zone = np.random.randint(0, 5, n)
num = np.random.randn(n, 6).astype("float32")
score = np.stack([num[:, k] + 0.8 * np.sin(soil + k) + 0.5 * (zone == k) for k in range(4)], 1)
cover = (score + 0.3 * np.random.randn(n, 4)).argmax(1)
cat = torch.tensor(np.stack([soil, zone], 1))
num, cover = torch.tensor(num), torch.tensor(cover)

perm = torch.randperm(n)
tr, va = perm[:2400], perm[2400:]
train_dl = DataLoader(TensorDataset(cat[tr], num[tr], cover[tr]), batch_size=64, shuffle=True, drop_last=True)
valid_dl = DataLoader(TensorDataset(cat[va], num[va], cover[va]), batch_size=256)


# %%
class CoverNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.ModuleList([nn.Embedding(12, 6), nn.Embedding(5, 3)])
        self.body = nn.Sequential(
            nn.Linear(6 + 3 + 6, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(64, 4),
        )

    def forward(self, c, x):
        e = [m(c[:, i]) for i, m in enumerate(self.emb)]
        return self.body(torch.cat([*e, x], 1))


net = CoverNet().to(device)
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", enabled=use_amp)


# %%
def validate():
    net.eval()
    ok = 0
    with torch.no_grad(), torch.autocast(device, dtype=torch.float16, enabled=use_amp):
        for c, x, y in valid_dl:
            ok += (net(c.to(device), x.to(device)).argmax(1).cpu() == y).sum().item()
    return ok / len(va)


# %% train
history = []
for epoch in range(6):
    net.train()
    losses = []
    for c, x, y in train_dl:
        c, x, y = c.to(device), x.to(device), y.to(device)
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16, enabled=use_amp):
            loss = criterion(net(c, x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        opt.step()
        scaler.update()
        losses.append(loss.item())
    history.append((np.mean(losses), validate()))
    print(f"epoch {epoch}  loss {history[-1][0]:.3f}  valid acc {history[-1][1]:.3f}")

# %%
best = max(h[1] for h in history)
print("best", round(best, 3))
