import json
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from metrics import SegScore

DEFAULTS = {"seed": 21, "size": 32, "train": 160, "val": 48, "batch": 16, "epochs": 5, "lr": 4e-3, "classes": 3}


class Scenes(Dataset):
    """A square (1) and a disk (2) on noise; a one-pixel border is unlabelled."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = [self._draw(size, g) for _ in range(n)]

    @staticmethod
    def _draw(s, g):
        mask = torch.zeros(s, s, dtype=torch.long)
        a, b = torch.randint(2, s - 12, (2,), generator=g).tolist()
        w = int(torch.randint(6, 11, (1,), generator=g))
        mask[a:a + w, b:b + w] = 1
        cy, cx = torch.randint(8, s - 8, (2,), generator=g).tolist()
        yy, xx = torch.meshgrid(torch.arange(s), torch.arange(s), indexing="ij")
        mask[(yy - cy) ** 2 + (xx - cx) ** 2 < 30] = 2
        base = torch.tensor([[0., 0., 0.], [1., .2, 0.], [.1, .3, 1.]])
        img = base[mask].permute(2, 0, 1) + 0.4 * torch.randn(3, s, s, generator=g)
        mask[0], mask[-1], mask[:, 0], mask[:, -1] = 255, 255, 255, 255
        return img, mask

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class TinyUNet(nn.Module):
    def __init__(self, k, c=12):
        super().__init__()
        blk = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())
        self.a, self.b, self.c = blk(3, c), blk(c, 2 * c), blk(3 * c, c)
        self.out = nn.Conv2d(c, k, 1)

    def forward(self, x):
        top = self.a(x)
        low = self.b(F.max_pool2d(top, 2))
        up = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.c(torch.cat([top, up], 1)))


def main():
    cfg = DEFAULTS | (json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    torch.manual_seed(cfg["seed"])
    tr = DataLoader(Scenes(cfg["train"], cfg["size"], 100), cfg["batch"], shuffle=True)
    va = DataLoader(Scenes(cfg["val"], cfg["size"], 200), cfg["batch"])
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = TinyUNet(cfg["classes"]).to(dev)
    opt = torch.optim.AdamW(net.parameters(), cfg["lr"])
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg["lr"], total_steps=cfg["epochs"] * len(tr))
    score = SegScore(cfg["classes"])
    for ep in range(cfg["epochs"]):
        net.train()
        for img, mask in tr:
            img, mask = img.to(dev), mask.to(dev)
            opt.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(img), mask, ignore_index=255)
            loss.backward()
            opt.step()
            sched.step()
        net.eval()
        score.reset()
        with torch.no_grad():
            for img, mask in va:
                score.update(net(img.to(dev)), mask.to(dev))
        print(f"epoch {ep}: loss {loss.item():.3f}  mIoU {score.mean_iou():.4f}  pixel acc {score.pixel_accuracy():.4f}")


if __name__ == "__main__":
    main()
