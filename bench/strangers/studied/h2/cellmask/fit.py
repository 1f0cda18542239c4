import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from losses import build_loss
from net import TinyUNet

CFG = {
    "seed": 0, "epochs": 6, "lr": 3e-3, "batch": 16,
    "loss": [
        {"name": "bce", "weight": 0.3},
        {"name": "tversky", "weight": 0.7, "args": {"alpha": 0.3, "beta": 0.7}},
    ],
}


def cells(n, size=24, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    masks = np.zeros((n, 1, size, size), np.float32)
    for m in masks:
        for _ in range(rng.integers(1, 4)):
            cy, cx, r = rng.uniform(4, size - 4), rng.uniform(4, size - 4), rng.uniform(2, 5)
            m[0] = np.maximum(m[0], ((yy - cy) ** 2 + (xx - cx) ** 2 < r * r))
    images = masks + 0.7 * rng.standard_normal(masks.shape).astype(np.float32)
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(masks))


def iou(net, loader):
    net.eval()
    inter = union = 0.0
    for img, mask in loader:
        seg = net.segment(img)
        inter += (seg * mask).sum().item()
        union += ((seg + mask) > 0).float().sum().item()
    return inter / union


if __name__ == "__main__":
    torch.manual_seed(CFG["seed"])
    train = DataLoader(cells(192, seed=1), CFG["batch"], shuffle=True)
    val = DataLoader(cells(48, seed=2), 48)
    net, loss_fn = TinyUNet(), build_loss(CFG["loss"])
    opt = torch.optim.Adam(net.parameters(), lr=CFG["lr"])
    for epoch in range(CFG["epochs"]):
        net.train()
        history = []
        for img, mask in train:
            loss = loss_fn(net(img), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            history.append(loss.item())
        print(f"{epoch}: loss {np.mean(history):8.3f}  val IoU {iou(net, val):.3f}")
