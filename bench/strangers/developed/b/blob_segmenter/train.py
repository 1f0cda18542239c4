import logging

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from metrics import SegmentationScore
from unet import TinyUNet

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("seg")


class Blobs(Dataset):
    """Discs (1) and squares (2) on a noisy background (0). Each index has its own seed."""

    def __init__(self, n, offset, size=32):
        self.n, self.offset, self.size = n, offset, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.offset + i)
        s = self.size
        yy, xx = torch.meshgrid(torch.arange(s), torch.arange(s), indexing="ij")
        mask = torch.zeros(s, s, dtype=torch.long)
        for kind in (1, 2):
            cx, cy = torch.randint(6, s - 6, (2,), generator=g).tolist()
            r = int(torch.randint(3, 7, (), generator=g))
            if kind == 1:
                mask[(xx - cx) ** 2 + (yy - cy) ** 2 <= r * r] = 1
            else:
                mask[(xx - cx).abs().maximum((yy - cy).abs()) <= r] = 2
        img = (mask > 0).float() + 0.2 * mask + 0.4 * torch.randn(s, s, generator=g)
        return img[None], mask


def dice_ce(logits, mask):
    ce = F.cross_entropy(logits, mask)
    p = logits.softmax(1)
    t = F.one_hot(mask, logits.shape[1]).permute(0, 3, 1, 2).float()
    dice = (2 * (p * t).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + t.sum((0, 2, 3)) + 1)
    return ce + (1 - dice.mean())


class Runner:
    def __init__(self, epochs=4, lr=3e-3):
        torch.manual_seed(7)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = TinyUNet().to(self.device)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr)
        self.train_dl = DataLoader(Blobs(160, 0), 16, shuffle=True)
        self.val_dl = DataLoader(Blobs(48, 100_000), 16)
        self.score = SegmentationScore(3)
        self.epochs = epochs

    def train_epoch(self):
        self.net.train()
        acc = 0.0
        for img, mask in self.train_dl:
            img, mask = img.to(self.device), mask.to(self.device)
            loss = dice_ce(self.net(img), mask)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            acc += loss.item()
        return acc / len(self.train_dl)

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        self.score.reset()
        for img, mask in self.val_dl:
            pred = self.net(img.to(self.device)).argmax(1).cpu()
            self.score.update(pred, mask)
        return self.score.compute()

    def run(self):
        for e in range(self.epochs):
            loss = self.train_epoch()
            m = self.evaluate()
            log.info("epoch %d | loss %.4f | pixel acc %.4f | mIoU %.4f", e, loss, m["pixel_acc"], m["miou"])


if __name__ == "__main__":
    Runner().run()
