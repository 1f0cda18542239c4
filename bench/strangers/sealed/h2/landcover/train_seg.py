import torch
from torch import nn
from torch.utils.data import DataLoader

from scenes import CLASSES, LandCover
from transforms import Compose, Normalise, RandomFlip, ReduceZeroLabel, ToLong

IGNORE = 255
base = [ToLong(), ReduceZeroLabel(), Normalise(0.4, 0.35)]
train_tf = Compose(*base, RandomFlip())
test_tf = Compose(*base)


def make_net(bands, n_classes, w=16):
    return nn.Sequential(
        nn.Conv2d(bands, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU(),
        nn.Conv2d(w, w, 3, padding=2, dilation=2), nn.BatchNorm2d(w), nn.ReLU(),
        nn.Conv2d(w, n_classes, 1),
    )


@torch.no_grad()
def confusion(net, loader, k):
    net.eval()
    mat = torch.zeros(k, k, dtype=torch.long)
    for batch in loader:
        pred = net(batch["image"]).argmax(1)
        ok = batch["mask"] < k
        ok &= batch["mask"] >= 0
        mat += torch.bincount(batch["mask"][ok] * k + pred[ok], minlength=k * k).view(k, k)
    return mat


def main():
    torch.manual_seed(0)
    train = DataLoader(LandCover(120, seed=1, transform=train_tf), 12, shuffle=True)
    test = DataLoader(LandCover(30, seed=2, transform=test_tf), 30)
    net = make_net(4, len(CLASSES))
    crit = nn.CrossEntropyLoss(ignore_index=IGNORE)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for epoch in range(4):
        net.train()
        for batch in train:
            opt.zero_grad()
            loss = crit(net(batch["image"]), batch["mask"])
            loss.backward()
            opt.step()
        mat = confusion(net, test, len(CLASSES)).float()
        iou = mat.diag() / (mat.sum(0) + mat.sum(1) - mat.diag()).clamp(min=1)
        print(f"epoch {epoch} loss {loss.item():.3f} mIoU {iou.mean():.3f}", {c: round(v, 2) for c, v in zip(CLASSES, iou.tolist())})


if __name__ == "__main__":
    main()
