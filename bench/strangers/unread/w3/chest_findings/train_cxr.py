"""Findings on (simulated) chest radiographs; an image can show any number of them, or none."""
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

from losses import FocalLoss

FINDINGS = ["effusion", "nodule", "cardiomegaly", "atelectasis"]


class Radiographs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = (torch.rand(n, len(FINDINGS), generator=g) < 0.35).float()
        x = 0.4 * torch.randn(n, 1, 32, 32, generator=g)
        yy, xx = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
        signs = torch.stack([
            (yy > 26).float(),
            (((yy - 8) ** 2 + (xx - 8) ** 2) < 9).float(),
            (((yy - 18) ** 2 + (xx - 18) ** 2) < 36).float(),
            ((yy % 6 == 0) & (xx > 20)).float(),
        ])
        self.x = x + torch.einsum("nk,khw->nhw", self.y, signs).unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def build_model(n_findings):
    def block(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    return nn.Sequential(block(1, 16), block(16, 32), block(32, 32), nn.Flatten(), nn.Linear(32 * 16, n_findings))


def report(model, loader):
    model.eval()
    probs, truth = [], []
    with torch.no_grad():
        for x, y in loader:
            probs.append(torch.sigmoid(model(x)).cpu())
            truth.append(y)
    p, t = torch.cat(probs).numpy(), torch.cat(truth).numpy()
    auc = roc_auc_score(t, p, average="macro")
    f1 = f1_score(t, p > 0.5, average="macro", zero_division=0)
    return auc, f1


def main():
    torch.manual_seed(44)
    train = DataLoader(Radiographs(600, 0), batch_size=30, shuffle=True)
    val = DataLoader(Radiographs(200, 1), batch_size=50)
    model = build_model(len(FINDINGS))
    criterion = FocalLoss(gamma=1.5)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        model.train()
        total = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
        auc, f1 = report(model, val)
        print(f"epoch {epoch}: loss {total / 600:.4f}  macro AUC {auc:.4f}  macro F1 {f1:.4f}")


if __name__ == "__main__":
    main()
