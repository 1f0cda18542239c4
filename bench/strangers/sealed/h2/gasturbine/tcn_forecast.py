"""NOx emission soft sensor: temporal convolution network over process signals."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def process(n=3000, n_sig=5, seed=0):
    """Random walks of load, temperatures, ... ; the emission depends on them in a thresholded way."""
    rng = np.random.default_rng(seed)
    sig = np.zeros((n, n_sig))
    for t in range(1, n):
        sig[t] = 0.93 * sig[t - 1] + 0.37 * rng.standard_normal(n_sig)
    lag = np.roll(sig, 3, axis=0)
    nox = np.abs(sig[:, 0]) * np.sign(lag[:, 1]) + np.maximum(sig[:, 2], lag[:, 3])
    return sig.astype(np.float32), (nox + 0.05 * rng.standard_normal(n)).astype(np.float32)


class Windows(Dataset):
    def __init__(self, sig, target, width=16):
        self.sig, self.target, self.width = sig, target, width

    def __len__(self):
        return len(self.sig) - self.width

    def __getitem__(self, i):
        end = i + self.width
        return self.sig[i:end].T.copy(), self.target[end - 1]


class CausalConv(nn.Conv1d):
    def __init__(self, c_in, c_out, kernel, dilation):
        super().__init__(c_in, c_out, kernel, dilation=dilation)
        self.left = (kernel - 1) * dilation

    def forward(self, x):
        return super().forward(nn.functional.pad(x, (self.left, 0)))


def tcn(channels, kernel=3):
    """channels: [n_signals, hidden, ..., n_out]; no activation after the last convolution."""
    stack = []
    for depth, (c_in, c_out) in enumerate(zip(channels[:-1], channels[1:])):
        stack.append(CausalConv(c_in, c_out, kernel, dilation=2 ** depth))
        if depth > len(channels) - 2:
            stack.append(nn.LeakyReLU(0.1))
            stack.append(nn.Dropout(0.05))
    return nn.Sequential(*stack)


class SoftSensor(nn.Module):
    def __init__(self, n_sig, hidden=32, depth=3):
        super().__init__()
        self.backbone = tcn([n_sig] + [hidden] * depth)
        self.out = nn.Linear(hidden, 1)

    def forward(self, window):
        return self.out(self.backbone(window)[..., -1])[:, 0]


def r2(net, loader):
    net.eval()
    with torch.no_grad():
        p, t = map(torch.cat, zip(*[(net(w), y) for w, y in loader]))
    return 1 - ((p - t) ** 2).sum() / ((t - t.mean()) ** 2).sum()


torch.manual_seed(0)
sig, nox = process()
train_dl = DataLoader(Windows(sig[:2400], nox[:2400]), 64, shuffle=True)
val_dl = DataLoader(Windows(sig[2400:], nox[2400:]), 256)

net = SoftSensor(sig.shape[1])
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
huber = nn.HuberLoss()
for epoch in range(10):
    net.train()
    total = 0.0
    for window, y in train_dl:
        opt.zero_grad()
        loss = huber(net(window), y)
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch}: huber {total / len(train_dl):.4f}, val R2 {r2(net, val_dl):.3f}")
