"""Frame-window phone classification with a small TDNN (port of a Kaldi recipe)."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

N_PHONES, N_MEL = 10, 40
PROTOS = torch.randn(N_PHONES, N_MEL, 12, generator=torch.Generator().manual_seed(0))


class PhoneSegments(Dataset):
    def __init__(self, n, seed, noise=1.6):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            k = int(torch.randint(N_PHONES, (1,), generator=g))
            length = int(torch.randint(20, 40, (1,), generator=g))
            proto = nn.functional.interpolate(PROTOS[k][None], size=length, mode="linear")[0]
            self.items.append((proto + noise * torch.randn(N_MEL, length, generator=g), k))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class SegmentCollate:
    """Pads to the longest segment; SpecAugment-style masking as in the recipe."""

    def __init__(self, freq_mask=16, time_mask=8):
        self.freq_mask, self.time_mask = freq_mask, time_mask

    def mask(self, x):
        x = x.clone()
        f = random.randint(0, self.freq_mask)
        f0 = random.randint(0, x.size(0) - f)
        x[f0:f0 + f] = 0
        t = random.randint(0, self.time_mask)
        t0 = random.randint(0, x.size(1) - t)
        x[:, t0:t0 + t] = 0
        return x

    def __call__(self, batch):
        longest = max(x.size(1) for x, _ in batch)
        out = torch.zeros(len(batch), N_MEL, longest)
        lens = torch.empty(len(batch), dtype=torch.long)
        for i, (x, _) in enumerate(batch):
            out[i, :, :x.size(1)] = self.mask(x)
            lens[i] = x.size(1)
        return out, lens, torch.tensor([k for _, k in batch])


class TDNN(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(N_MEL, d, 3, padding=1), nn.ReLU(),
            nn.Conv1d(d, d, 3, padding=2, dilation=2), nn.ReLU())
        self.fc = nn.Linear(2 * d, N_PHONES)

    def forward(self, x, lens):
        h = self.layers(x)
        m = (torch.arange(h.size(-1))[None] < lens[:, None])[:, None].float()
        mean = (h * m).sum(-1) / lens[:, None]
        top = h.masked_fill(m == 0, -1e4).amax(-1)
        return self.fc(torch.cat([mean, top], 1))


def build_loaders(batch_size=32):
    sets = {"train": PhoneSegments(600, 1), "dev": PhoneSegments(200, 2)}
    return {name: DataLoader(ds, batch_size=batch_size, shuffle=(name == "train"), collate_fn=SegmentCollate())
            for name, ds in sets.items()}


def run(model, loader, opt=None):
    model.train(opt is not None)
    ce = nn.CrossEntropyLoss()
    loss_sum = hit = n = 0
    with torch.set_grad_enabled(opt is not None):
        for x, lens, y in loader:
            out = model(x, lens)
            loss = ce(out, y)
            if opt is not None:
                opt.zero_grad()
                loss.backward()
                opt.step()
            loss_sum += loss.item() * len(y)
            hit += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, 1 - hit / n


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    loaders = build_loaders()
    net = TDNN()
    optim = torch.optim.Adam(net.parameters(), lr=2e-3)
    for ep in range(1, 6):
        tl, te = run(net, loaders["train"], optim)
        dl, de = run(net, loaders["dev"])
        print(f"ep {ep} train {tl:.3f} PER {te:.3f} dev {dl:.3f} PER {de:.3f}")
