# cough / no-cough / sneeze from log-mel patches
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(21)
MELS, FRAMES = 24, 40


def make_patches(n):
    y = torch.randint(0, 3, (n,))
    x = 0.8 * torch.randn(n, MELS, FRAMES)
    onset = torch.randint(4, FRAMES - 14, (n,))
    for i in range(n):
        o = int(onset[i])
        if y[i] == 1:
            x[i, 2:8, o:o + 4] += 1.6
            x[i, 2:8, o + 7:o + 10] += 1.2
        elif y[i] == 2:
            x[i, 12:20, o:o + 8] += 1.1
    return x, y


class SpecMask:
    def __init__(self, max_f=10, max_t=18, n=2):
        self.max_f, self.max_t, self.n = max_f, max_t, n

    def __call__(self, spec):
        spec = spec.clone()
        for _ in range(self.n):
            f = int(torch.randint(0, self.max_f + 1, ()))
            f0 = int(torch.randint(0, MELS - f + 1, ()))
            spec[f0:f0 + f] = 0
            t = int(torch.randint(0, self.max_t + 1, ()))
            t0 = int(torch.randint(0, FRAMES - t + 1, ()))
            spec[:, t0:t0 + t] = 0
        return spec


masker = SpecMask()


def pack(samples):
    specs = torch.stack([masker(s) for s, _ in samples])
    targets = torch.stack([t for _, t in samples])
    return specs.unsqueeze(1), targets


full = TensorDataset(*make_patches(900))
train_part, dev_part = random_split(full, [650, 250], generator=torch.Generator().manual_seed(0))
common = dict(batch_size=32, collate_fn=pack, num_workers=0)
loaders = {
    "train": DataLoader(train_part, shuffle=True, **common),
    "dev": DataLoader(dev_part, **common),
}


class CoughNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveMaxPool2d((6, 1)))
        self.lin = nn.Linear(24 * 6, 3)

    def forward(self, s):
        return self.lin(self.cnn(s).flatten(1))


net = CoughNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
ce = nn.CrossEntropyLoss()

for epoch in range(7):
    stats = {}
    for phase in ("train", "dev"):
        net.train(phase == "train")
        right = seen = 0
        lsum = 0.0
        with torch.set_grad_enabled(phase == "train"):
            for spec, target in loaders[phase]:
                logits = net(spec)
                loss = ce(logits, target)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                lsum += loss.item() * len(target)
                right += (logits.argmax(1) == target).sum().item()
                seen += len(target)
        stats[phase] = (lsum / seen, right / seen)
    print(f"epoch {epoch} | train loss {stats['train'][0]:.3f} acc {stats['train'][1]:.3f} "
          f"| dev loss {stats['dev'][0]:.3f} acc {stats['dev'][1]:.3f}")
