"""Nodule classification on image patches. Memory is tight, hence the split of each batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SETTINGS = """
batch_size: 16        # per update
memory_slots: 1       # patches that fit at once
epochs: 6
lr: 0.003
channels: 12
seed: 40
"""


def read_settings(text):
    out = {}
    for line in text.strip().splitlines():
        key, value = line.split("#")[0].split(":")
        value = value.strip()
        out[key.strip()] = float(value) if "." in value else int(value)
    return out


class Patches(Dataset):
    def __init__(self, n, seed, size=20):
        g = torch.Generator().manual_seed(seed)
        ax = torch.linspace(-1, 1, size)
        yy, xx = torch.meshgrid(ax, ax, indexing="ij")
        self.label = torch.randint(2, (n,), generator=g)
        centre = 0.6 * torch.rand(n, 2, generator=g) - 0.3
        radius = 0.25 + 0.1 * torch.rand(n, generator=g)
        d = ((yy - centre[:, :1, None]) ** 2 + (xx - centre[:, 1:, None]) ** 2).sqrt()
        angle = torch.atan2(yy - centre[:, :1, None], xx - centre[:, 1:, None])
        spikes = 0.35 * self.label.view(-1, 1, 1) * torch.cos(6 * angle)
        inside = torch.sigmoid(20 * (radius.view(-1, 1, 1) * (1 + spikes) - d))
        brightness = 0.5 + 1.5 * torch.rand(n, 1, 1, generator=g)
        self.image = (brightness * inside + 0.15 * torch.randn(d.shape, generator=g)).unsqueeze(1)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.image[i], self.label[i]


class NoduleNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        def stage(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.s1, self.s2, self.s3 = stage(1, c), stage(c, 2 * c), stage(2 * c, 4 * c)
        self.fc = nn.Linear(4 * c, 2)

    def forward(self, x):
        x = F.max_pool2d(self.s1(x), 2)
        x = F.max_pool2d(self.s2(x), 2)
        return self.fc(self.s3(x).mean((2, 3)))


def main():
    s = read_settings(SETTINGS)
    torch.manual_seed(s["seed"])
    train = DataLoader(Patches(320, 1), s["batch_size"], shuffle=True, drop_last=True)
    val = DataLoader(Patches(160, 2), 32)
    net = NoduleNet(s["channels"])
    opt = torch.optim.Adam(net.parameters(), lr=s["lr"])
    for epoch in range(s["epochs"]):
        net.train()
        running = 0.0
        for image, label in train:
            opt.zero_grad()
            for im, la in zip(image.split(s["memory_slots"]), label.split(s["memory_slots"])):
                part = F.cross_entropy(net(im), la, reduction="sum") / len(label)
                part.backward()
                running += part.item()
            opt.step()
        net.eval()
        hits = total = 0
        val_loss = 0.0
        with torch.no_grad():
            for image, label in val:
                out = net(image)
                val_loss += F.cross_entropy(out, label, reduction="sum").item()
                hits += (out.argmax(1) == label).sum().item()
                total += len(label)
        print(f"{epoch} train {running / len(train):.3f} val {val_loss / total:.3f} acc {hits / total:.3f}")


if __name__ == "__main__":
    main()
