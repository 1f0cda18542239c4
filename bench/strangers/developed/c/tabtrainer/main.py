import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import Trainer


def loaders(batch_size, seed):
    X, y = load_diabetes(return_X_y=True)
    perm = np.random.default_rng(seed).permutation(len(X))
    tr, va = perm[:340], perm[340:]
    mx, sx, my, sy = X[tr].mean(0), X[tr].std(0), y[tr].mean(), y[tr].std()
    X, y = ((X - mx) / sx).astype("float32"), ((y - my) / sy).astype("float32")[:, None]
    mk = lambda i: TensorDataset(torch.from_numpy(X[i]), torch.from_numpy(y[i]))
    return DataLoader(mk(tr), batch_size, shuffle=True), DataLoader(mk(va), 256)


def main():
    torch.manual_seed(8)
    train_loader, val_loader = loaders(32, 8)
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device)
    epochs = 8
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=epochs * len(train_loader))
    Trainer(model, nn.SmoothL1Loss(), opt, sched, device, clip=5.0).fit(train_loader, val_loader, epochs)


if __name__ == "__main__":
    main()
