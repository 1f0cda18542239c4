import random
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

ORGANS = ["liver", "kidney", "spleen"]
ORGAN_ID = {name: i + 1 for i, name in enumerate(ORGANS)}      # mask value, 0 = tissue/background


def seed_all(s):
    random.seed(s); np.random.seed(s); torch.manual_seed(s)


class PhantomCT(Dataset):
    """Ellipses with organ-like intensity on a noisy slice."""
    intensity = {"liver": .8, "kidney": .55, "spleen": .3}

    def __init__(self, n, size=32, seed=0):
        r = np.random.RandomState(seed)
        self.items = []
        yy, xx = np.mgrid[:size, :size]
        for _ in range(n):
            img = r.normal(0, .08, (size, size))
            msk = np.zeros((size, size), np.int64)
            for o in ORGANS:
                cy, cx = r.randint(6, size - 6, 2)
                a, b = r.randint(3, 7, 2)
                e = ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 <= 1
                img[e] += self.intensity[o]
                msk[e] = ORGAN_ID[o]
            self.items.append((torch.tensor(img[None], dtype=torch.float32), torch.tensor(msk)))

    def __len__(self): return len(self.items)

    def __getitem__(self, i): return self.items[i]


class SegNet(nn.Module):
    def __init__(self, labels, c=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU())
        self.down = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU())
        self.dec = nn.Sequential(nn.Conv2d(3 * c, c, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(c, len(labels), 1)

    def forward(self, x):
        e = self.enc(x)
        d = F.interpolate(self.down(e), scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.cls(self.dec(torch.cat((e, d), 1)))


class Experiment:
    def __init__(self, labels=ORGANS, lr=2e-3, bs=16):
        self.labels = labels
        self.net = SegNet(labels)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr)
        self.train_dl = DataLoader(PhantomCT(128, seed=10), bs, shuffle=True)
        self.val_dl = DataLoader(PhantomCT(32, seed=11), bs)

    def fit(self, epochs):
        for e in range(epochs):
            self.net.train()
            for img, msk in self.train_dl:
                loss = F.cross_entropy(self.net(img), msk)
                self.opt.zero_grad(); loss.backward(); self.opt.step()
            print(f"ep {e}: last loss {loss.item():.3f}  " + "  ".join(f"{k}={v:.3f}" for k, v in self.validate().items()))

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        inter = {o: 0 for o in self.labels}; total = {o: 0 for o in self.labels}
        for img, msk in self.val_dl:
            pred = self.net(img).argmax(1)
            for o in self.labels:
                p, t = pred == ORGAN_ID[o], msk == ORGAN_ID[o]
                inter[o] += 2 * (p & t).sum().item(); total[o] += p.sum().item() + t.sum().item()
        return {o: inter[o] / max(total[o], 1) for o in self.labels}


if __name__ == "__main__":
    seed_all(2024)
    Experiment().fit(12)
