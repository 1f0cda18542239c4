import logging

import numpy as np
import torch
import yaml
from torch.nn import functional as F

from unet import SmallUNet

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger(__name__)


def blobs(n, seed, size=16):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    img, mask = np.zeros((n, 1, size, size), np.float32), np.zeros((n, 1, size, size), np.float32)
    for i in range(n):
        for _ in range(rng.integers(1, 4)):
            cy, cx, r = *rng.uniform(2, size - 2, 2), rng.uniform(1.5, 4)
            mask[i, 0][(yy - cy) ** 2 + (xx - cx) ** 2 < r * r] = 1
        img[i] = mask[i] + rng.normal(0, 0.7, mask[i].shape)
    return torch.from_numpy(img), torch.from_numpy(mask)


def dice(logits, mask):
    p = (logits > 0).float()
    return (2 * (p * mask).sum() / (p.sum() + mask.sum()).clamp(min=1)).item()


class Segmenter:
    def __init__(self, hp):
        self.hp = hp
        self.net = SmallUNet(hp["channels"])
        self.optim = torch.optim.SGD(self.net.parameters(), lr=hp["lr"], momentum=hp["momentum"])
        self.n_micro = hp["effective_batch"] // hp["micro_batch"]

    def big_step(self, images, masks):
        """One optimizer step on a batch that does not fit into memory at once."""
        self.optim.zero_grad()
        batch_loss = 0.0
        for im, ma in zip(images.chunk(self.n_micro), masks.chunk(self.n_micro)):
            loss = F.binary_cross_entropy_with_logits(self.net(im), ma)
            loss.backward()
            loss = loss / self.n_micro
            batch_loss += loss.item()
        self.optim.step()
        return batch_loss

    def fit(self, images, masks, val):
        for epoch in range(self.hp["epochs"]):
            self.net.train()
            history = []
            for idx in torch.randperm(len(images)).split(self.hp["effective_batch"]):
                history.append(self.big_step(images[idx], masks[idx]))
            self.net.eval()
            with torch.no_grad():
                score = dice(self.net(val[0]), val[1])
            logger.info("epoch %d: loss %.4f, dice %.3f", epoch, sum(history) / len(history), score)


if __name__ == "__main__":
    with open("params.yaml") as f:
        hp = yaml.safe_load(f)
    torch.manual_seed(0)
    Segmenter(hp).fit(*blobs(384, 0), val=blobs(96, 1))
