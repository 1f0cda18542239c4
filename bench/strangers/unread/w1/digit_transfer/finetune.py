# Two phases: first the head on fixed features, then the upper blocks with a small lr.
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

X, y = load_digits(return_X_y=True)
X = torch.tensor(X / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
y = torch.tensor(y)
source = y < 5
Xs, ys = X[source], y[source]
Xt, yt = X[~source], y[~source] - 5
tr, te = train_test_split(np.arange(len(yt)), test_size=0.3, stratify=yt, random_state=0)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())


class Net(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.backbone = nn.ModuleDict({
            "stem": block(1, 8),
            "low": block(8, 16),
            "mid": block(16, 16),
            "top": block(16, 32),
        })
        self.head = nn.Linear(32, n_out)

    def forward(self, x):
        for stage in self.backbone.values():
            x = stage(x)
        return self.head(x.mean((2, 3)))


def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


def thaw(module):
    for layer in module.children():
        layer.requires_grad = True


def fit(net, loader, opt, epochs, tag):
    ce = nn.CrossEntropyLoss()
    for ep in range(epochs):
        net.train()
        tot = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = ce(net(xb), yb)
            loss.backward()
            opt.step()
            tot += loss.item() * len(xb)
        print(f"{tag} {ep} {tot / len(loader.dataset):.4f}")


@torch.no_grad()
def score(net):
    net.eval()
    return (net(Xt[te]).argmax(1) == yt[te]).float().mean().item()


net = Net(5)
fit(net, DataLoader(TensorDataset(Xs, ys), 64, shuffle=True),
    torch.optim.Adam(net.parameters(), 2e-3), 4, "pretrain")

net.head = nn.Linear(32, 5)
freeze(net.backbone)
target = DataLoader(TensorDataset(Xt[tr], yt[tr]), 64, shuffle=True)
fit(net, target, torch.optim.Adam(net.head.parameters(), 5e-3), 4, "head")
print("after head", score(net))

upper = [net.backbone["mid"], net.backbone["top"]]
for part in upper:
    thaw(part)
opt = torch.optim.AdamW([
    {"params": [p for part in upper for p in part.parameters()], "lr": 5e-4},
    {"params": net.head.parameters(), "lr": 1e-3},
])
fit(net, target, opt, 5, "tune")
print("after tuning", score(net))
torch.save(net.state_dict(), "/tmp/digit_transfer_w1.pt")
