# pretrain a small MLP on upright digits, then adapt it to rotated ones with low-rank updates
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, rank=4, alpha=8.0):
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.empty(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_a), self.lora_b)


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def add_lora(net, names, rank):
    for p in net.parameters():
        p.requires_grad_(False)
    for n in names:
        setattr(net, n, LowRank(getattr(net, n), rank))
    init_lora(net)
    return net


def init_lora(net):
    """Start from the pretrained function: the update is zero."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            if "lora_" in name:
                p.zero_()


def loop(net, x, y, epochs, lr, tag):
    params = [p for p in net.parameters() if p.requires_grad]
    print(tag, "trainable parameters:", sum(p.numel() for p in params))
    opt = torch.optim.Adam(params, lr=lr)
    for ep in range(epochs):
        net.train()
        tot = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        if (ep + 1) % 5 == 0:
            print(f"{tag} epoch {ep + 1} loss {tot / len(x):.4f}")


@torch.no_grad()
def acc(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
digits = load_digits()
images, labels = digits.images / 16.0, digits.target
xa, xb, ya, yb = train_test_split(images, labels, test_size=0.3, random_state=0, stratify=labels)
flat = lambda im: torch.tensor(np.ascontiguousarray(im).reshape(len(im), -1), dtype=torch.float32)
turn = lambda im: np.rot90(im, axes=(1, 2))
ya, yb = torch.tensor(ya), torch.tensor(yb)

net = DigitNet()
loop(net, flat(xa), ya, 15, 2e-3, "pretrain")
print(f"upright {acc(net, flat(xb), yb):.3f} rotated {acc(net, flat(turn(xb)), yb):.3f}")

net = add_lora(net, ["fc1", "fc2", "fc3"], rank=8)
loop(net, flat(turn(xa)), ya, 15, 5e-3, "adapt")
print(f"after adaptation: rotated {acc(net, flat(turn(xb)), yb):.3f}")
