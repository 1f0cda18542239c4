import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from pipelines import build

SR, KEYWORDS = 2000, 5


def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(SR // 2) / SR
    labels = torch.randint(0, KEYWORDS, (n,), generator=g)
    f0 = 120 + 90 * labels + 15 * torch.randn(n, generator=g)
    sweep = 60 * torch.rand(n, generator=g)
    phase = 2 * math.pi * (f0[:, None] * t + sweep[:, None] * t ** 2)
    loud = 0.1 + torch.rand(n, 1, generator=g)
    return loud * torch.sin(phase) + 0.1 * torch.randn(n, len(t), generator=g), labels


class Clips(Dataset):
    def __init__(self, waves, labels, pipeline):
        self.waves, self.labels, self.pipeline = waves, labels, pipeline

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.pipeline(self.waves[i]), self.labels[i]


def fill_cmvn(ctx, waves):
    front = build("stats", ctx)
    stack = torch.stack([front(w) for w in waves])
    ctx["mean"] = stack.mean(dim=(0, 2))[:, None]
    ctx["std"] = stack.std(dim=(0, 2))[:, None] + 1e-5


class Spotter(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.gru = nn.GRU(bins, 32, batch_first=True)
        self.out = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, KEYWORDS))

    def forward(self, spec):
        h, _ = self.gru(spec.transpose(1, 2))
        return self.out(h.mean(1))


def main():
    torch.manual_seed(1)
    ctx = {"n_fft": 64, "hop": 32, "floor": 1e-4, "mask_width": 4}
    w_tr, l_tr = synth(400, 10)
    w_va, l_va = synth(150, 11)
    fill_cmvn(ctx, w_tr)
    train = DataLoader(Clips(w_tr, l_tr, build("train", ctx)), 32, shuffle=True)
    valid = DataLoader(Clips(w_va, l_va, build("eval", ctx)), 64)

    net = Spotter(ctx["n_fft"] // 2 + 1)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    ce = nn.CrossEntropyLoss()
    for epoch in range(5):
        net.train()
        tot = 0.0
        for spec, lab in train:
            opt.zero_grad()
            loss = ce(net(spec), lab)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            tot += loss.item() * len(lab)
        net.eval()
        with torch.no_grad():
            ok = sum((net(s).argmax(1) == l).sum().item() for s, l in valid)
        print(f"[{epoch}] train loss {tot / len(l_tr):.3f}  valid acc {ok / len(l_va):.3f}")


if __name__ == "__main__":
    main()
