import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from utils import CFG, AverageMeter, init_worker, set_seed


def make_tiles(n, size, seed):
    rs = np.random.RandomState(seed)
    yy, xx = np.mgrid[:size, :size]
    imgs, masks = [], []
    for _ in range(n):
        m = np.zeros((size, size), bool)
        for _ in range(rs.randint(1, 4)):
            cy, cx, r = rs.randint(4, size - 4, 2).tolist() + [rs.randint(3, 8)]
            m |= (yy - cy) ** 2 + (xx - cx) ** 2 < r * r
        imgs.append(rs.rand(size, size, 3) * 0.5 + m[..., None] * 0.4)
        masks.append(m)
    return np.stack(imgs).astype(np.float32), np.stack(masks).astype(np.float32)


class TileDataset(Dataset):
    def __init__(self, imgs, masks, train=True):
        self.imgs, self.masks, self.train = imgs, masks, train

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, idx):
        img, mask = self.imgs[idx], self.masks[idx]
        if self.train:
            if np.random.rand() < 0.5:
                img, mask = img[:, ::-1], mask[:, ::-1]
            if np.random.rand() < 0.5:
                img, mask = img[::-1], mask[::-1]
            k = np.random.randint(4)
            img, mask = np.rot90(img, k), np.rot90(mask, k)
            img = img * np.random.uniform(0.8, 1.2) + np.random.uniform(-0.1, 0.1)
        img = np.ascontiguousarray(img.transpose(2, 0, 1), dtype=np.float32)
        return torch.from_numpy(img), torch.from_numpy(np.ascontiguousarray(mask))[None]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = block(3, 16), block(16, 32)
        self.u1 = block(48, 16)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        return self.out(self.u1(torch.cat([a, F.interpolate(b, scale_factor=2)], 1)))


def dice(logits, y):
    p = (logits.sigmoid() > CFG.thr).float()
    return ((2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)).item()


if __name__ == "__main__":
    set_seed()
    tr = TileDataset(*make_tiles(320, CFG.size, 0))
    va = TileDataset(*make_tiles(64, CFG.size, 1), train=False)
    tl = DataLoader(tr, CFG.bs, shuffle=True, num_workers=CFG.num_workers, worker_init_fn=init_worker, drop_last=True)
    vl = DataLoader(va, CFG.bs, num_workers=CFG.num_workers)
    model = TinyUNet()
    opt = torch.optim.AdamW(model.parameters(), lr=CFG.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, CFG.lr, total_steps=CFG.epochs * len(tl))
    for ep in range(CFG.epochs):
        model.train()
        lm, dm = AverageMeter(), AverageMeter()
        for x, y in tl:
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            lm.update(loss.item(), len(x))
        model.eval()
        with torch.no_grad():
            for x, y in vl:
                dm.update(dice(model(x), y), len(x))
        print(f"ep{ep} loss {lm.avg:.4f} dice {dm.avg:.4f}")
