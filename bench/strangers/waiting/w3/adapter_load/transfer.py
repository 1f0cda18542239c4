"""Take over the encoder of a model trained elsewhere (DataParallel, then torch.compile) and fit a new head.

A new task starts here, so optimizer and schedule start from scratch too.
"""
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(2, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 32, 5, padding=2), nn.ReLU())

    def forward(self, x):
        return self.conv(x).amax(-1)


class Net(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.encoder, self.fc = Encoder(), nn.Linear(32, n_out)

    def forward(self, x):
        return self.fc(self.encoder(x))


def waves(n, kinds):
    k = torch.randint(len(kinds), (n,))
    f = torch.tensor(kinds)[k][:, None]
    t = torch.arange(40.0)
    ph = 6.28 * torch.rand(n, 1)
    x = torch.stack([torch.sin(f * t + ph), torch.cos(f * t + ph)], 1)
    return x + 0.4 * torch.randn(n, 2, 40), k


def clean(state):
    for prefix in ("_orig_mod.", "module."):
        state = {k.removeprefix(prefix): v for k, v in state.items()}
    return state


def fit(model, params, kinds, steps, lr, tag):
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(steps):
        x, y = waves(64, kinds)
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        x, y = waves(500, kinds)
        print(tag, "acc on fresh samples %.3f" % (model(x).argmax(1) == y).float().mean())
    return opt


path = os.path.join(tempfile.mkdtemp(), "source.pt")
wrapped = nn.DataParallel(Net(4))
opt = fit(wrapped, wrapped.parameters(), [0.2, 0.5, 0.9, 1.4], 80, 5e-3, "source")
torch.save({"model": wrapped.state_dict(), "optimizer": opt.state_dict()}, path)

state = clean(torch.load(path)["model"])
state = {k: v for k, v in state.items() if not k.startswith("fc.")}
net = Net(3)
missing, unexpected = net.load_state_dict(state, strict=False)
assert not unexpected and set(missing) == {"fc.weight", "fc.bias"}, (missing, unexpected)
fit(net, net.fc.parameters(), [0.35, 0.7, 1.1], 80, 1e-2, "head only")
fit(net, net.parameters(), [0.35, 0.7, 1.1], 60, 1e-3, "whole net")
