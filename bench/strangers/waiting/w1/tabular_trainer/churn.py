import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer, TrainerArgs


def make_loaders(batch_size=64):
    X, y = make_classification(3000, 30, n_informative=12, n_classes=3, random_state=0)
    Xtr, Xva, ytr, yva = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    scaler = StandardScaler().fit(Xtr)

    def ds(a, b):
        return TensorDataset(torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b))

    return (DataLoader(ds(Xtr, ytr), batch_size, shuffle=True, drop_last=True),
            DataLoader(ds(Xva, yva), 512))


class Block(nn.Module):
    def __init__(self, d, p=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(p), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.net(x)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader, valid_loader = make_loaders()
    model = nn.Sequential(nn.Linear(30, 64), Block(64), Block(64), nn.LayerNorm(64), nn.Linear(64, 3))
    Trainer(model, nn.CrossEntropyLoss(), TrainerArgs()).fit(train_loader, valid_loader)
