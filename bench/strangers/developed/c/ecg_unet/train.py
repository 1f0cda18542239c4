# %% [markdown]
# # Segmenting P / QRS / T waves in single-lead ECG
# 1-D U-Net, following the 2-D one from the lecture.

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 1
np.random.seed(SEED)
torch.manual_seed(SEED)
FS = 125            # Hz
SECONDS = 2
N_CLASSES = 4       # none, P, QRS, T

# %%
def fake_ecg(n):
    t = np.arange(FS * SECONDS)
    X = np.random.randn(n, len(t)).astype("float32") * 0.05
    Y = np.zeros((n, len(t)), dtype="int64")
    for i in range(n):
        c = np.random.randint(10, 50)
        while c < len(t):
            for cls, (shift, width, amp) in enumerate([(-20, 6, 0.2), (0, 3, 1.0), (30, 9, 0.35)], start=1):
                mu = c + shift
                X[i] += amp * np.exp(-0.5 * ((t - mu) / width) ** 2)
                Y[i, max(0, mu - 2 * width):max(0, mu + 2 * width)] = cls
            c += np.random.randint(85, 115)
    return torch.from_numpy(X).unsqueeze(1), torch.from_numpy(Y)


Xtr, Ytr = fake_ecg(160)
Xva, Yva = fake_ecg(40)
train_loader = DataLoader(TensorDataset(Xtr, Ytr), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(Xva, Yva), batch_size=40)

# %%
def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv1d(cin, cout, 5, padding=2), nn.BatchNorm1d(cout), nn.ReLU(),
        nn.Conv1d(cout, cout, 5, padding=2), nn.BatchNorm1d(cout), nn.ReLU(),
    )


class UNet1D(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.d1 = double_conv(1, base)
        self.d2 = double_conv(base, base * 2)
        self.mid = double_conv(base * 2, base * 4)
        self.pool = nn.MaxPool1d(2)
        self.up2 = nn.ConvTranspose1d(base * 4, base * 2, 2, stride=2)
        self.u2 = double_conv(base * 4, base * 2)
        self.up1 = nn.ConvTranspose1d(base * 2, base, 2, stride=2)
        self.u1 = double_conv(base * 2, base)
        self.out = nn.Conv1d(base, N_CLASSES, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        m = self.mid(self.pool(b))
        y = self.u2(torch.cat([self.up2(m), b], dim=1))
        y = self.u1(torch.cat([self.up1(y), a], dim=1))
        return self.out(y)


# %%
net = UNet1D()
crit = nn.CrossEntropyLoss()
optim = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(4):
    net.train()
    losses = []
    for x, y in train_loader:
        optim.zero_grad()
        loss = crit(net(x), y)
        loss.backward()
        optim.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        acc = np.mean([(net(x).argmax(1) == y).float().mean().item() for x, y in val_loader])
    print(epoch, np.mean(losses), acc)
