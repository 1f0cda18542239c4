import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from config import load_config
from unet import UNet


def cells(n, seed, size=32):
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    masks = torch.zeros(n, 1, size, size)
    for i in range(n):
        for _ in range(3):
            cx, cy = torch.randint(4, size - 4, (2,), generator=g)
            r = torch.randint(3, 6, (1,), generator=g)
            masks[i, 0] = torch.maximum(masks[i, 0], ((xx - cx) ** 2 + (yy - cy) ** 2 <= r ** 2).float())
    images = 0.7 * masks + 0.5 * torch.randn(masks.shape, generator=g)
    return TensorDataset(images, masks)


def dice(prob, target, eps=1.0):
    inter = (prob * target).sum((1, 2, 3))
    return ((2 * inter + eps) / (prob.sum((1, 2, 3)) + target.sum((1, 2, 3)) + eps)).mean()


def main():
    cfg = load_config()
    torch.manual_seed(cfg["seed"])
    dev = torch.device(cfg["device"])
    train = DataLoader(cells(cfg["data"]["n_train"], 0), cfg["data"]["batch_size"], shuffle=True)
    val = DataLoader(cells(64, 1), 64)
    net = UNet(**cfg["model"]).to(dev)
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["optim"]["lr"], weight_decay=cfg["optim"]["weight_decay"])

    for epoch in range(cfg["optim"]["epochs"]):
        net.train()
        tot = 0.0
        for img, msk in train:
            img, msk = img.to(dev), msk.to(dev)
            logit = net(img)
            loss = F.binary_cross_entropy_with_logits(logit, msk) + 1 - dice(logit.sigmoid(), msk)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        net.eval()
        with torch.no_grad():
            d = sum(dice((net(i.to(dev)) > 0).float(), m.to(dev)).item() for i, m in val) / len(val)
        print(f"epoch {epoch + 1}: loss {tot / len(train):.4f} val dice {d:.4f}")


if __name__ == "__main__":
    main()
