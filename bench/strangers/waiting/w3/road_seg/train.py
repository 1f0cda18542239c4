import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from metrics import ConfusionMatrix
from net import TinyFCN

CLASSES = ["background", "road", "vehicle"]


class Scenes(Dataset):
    """Procedural road scenes; the annotators' void label is 255 along the image border."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        lab = torch.zeros(32, 32, dtype=torch.long)
        left = int(torch.randint(4, 14, (1,), generator=g))
        lab[:, left:left + 12] = 1
        r = int(torch.randint(2, 24, (1,), generator=g))
        lab[r:r + 6, left + 2:left + 8] = 2
        colour = torch.tensor([[.1, .6, .2], [.4, .4, .4], [.7, .3, .2]])
        img = colour[lab].permute(2, 0, 1) + 0.35 * torch.randn(3, 32, 32, generator=g)
        lab[0] = lab[-1] = 255
        return img, lab


class SegTrainer:
    def __init__(self, epochs=5, lr=3e-3):
        self.epochs = epochs
        self.model = TinyFCN(len(CLASSES))
        self.criterion = nn.CrossEntropyLoss(ignore_index=255)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.train_dl = DataLoader(Scenes(160, 1), 16, shuffle=True)
        self.val_dl = DataLoader(Scenes(40, 2), 20)
        self.confmat = ConfusionMatrix(len(CLASSES))

    def run_train(self):
        self.model.train()
        s = 0.0
        for img, lab in self.train_dl:
            loss = self.criterion(self.model(img), lab)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            s += loss.item()
        return s / len(self.train_dl)

    @torch.no_grad()
    def run_val(self):
        self.model.eval()
        for img, lab in self.val_dl:
            self.confmat.update(lab, self.model(img).argmax(1))
        iou = self.confmat.iou()
        return iou.mean().item(), self.confmat.pixel_acc(), iou

    def fit(self):
        best = -1.0
        for ep in range(self.epochs):
            loss = self.run_train()
            miou, acc, per_class = self.run_val()
            details = " ".join(f"{c}={v:.3f}" for c, v in zip(CLASSES, per_class.tolist()))
            print(f"[{ep}] loss {loss:.4f} mIoU {miou:.4f} acc {acc:.4f} | {details}")
            if miou > best:
                best = miou
                torch.save(self.model.state_dict(), "/tmp/w3_road_seg.pt")


if __name__ == "__main__":
    torch.manual_seed(0)
    SegTrainer().fit()
