import copy

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from torch import nn, optim


class CFG:
    seed = 777
    epochs = 6
    bs = 48
    lr = 2e-3
    drop = 0.4
    ema_decay = 0.97


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.Dropout2d(CFG.drop / 2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv(1, 16), conv(16, 32), nn.MaxPool2d(2), conv(32, 64), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(CFG.drop), nn.Linear(64, 10))

    def forward(self, x):
        return self.head(self.features(x))


class Trainer:
    def __init__(self, train, valid):
        self.train_xy, self.valid_xy = train, valid
        self.model = Net()
        self.model_ema = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=CFG.lr)
        steps = CFG.epochs * -(-len(train[1]) // CFG.bs)
        self.scheduler = optim.lr_scheduler.OneCycleLR(self.optimizer, CFG.lr * 3, total_steps=steps)
        self.criterion = nn.CrossEntropyLoss()

    @torch.no_grad()
    def update_ema(self):
        for e, m in zip(self.model_ema.parameters(), self.model.parameters()):
            e.lerp_(m, 1 - CFG.ema_decay)
        for e, m in zip(self.model_ema.buffers(), self.model.buffers()):
            e.copy_(m)

    def train_one_epoch(self):
        self.model.train()
        x, y = self.train_xy
        for idx in torch.randperm(len(y)).split(CFG.bs):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x[idx]), y[idx])
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.update_ema()
        return loss.item()

    @torch.no_grad()
    def valid_one_epoch(self):
        self.model_ema.eval()
        x, y = self.valid_xy
        logits = torch.cat([self.model(b) for b in x.split(64)])
        return self.criterion(logits, y).item(), (logits.argmax(1) == y).float().mean().item()

    def fit(self):
        best = 0.0
        for epoch in range(CFG.epochs):
            train_loss = self.train_one_epoch()
            valid_loss, acc = self.valid_one_epoch()
            print(f"Epoch {epoch + 1}/{CFG.epochs} | train {train_loss:.4f} | valid {valid_loss:.4f} | acc {acc:.4f}")
            if acc > best:
                best = acc
                torch.save({"model": self.model.state_dict(), "ema": self.model_ema.state_dict()}, "best.pth")
        print("best", best)


if __name__ == "__main__":
    torch.manual_seed(CFG.seed)
    digits = load_digits()
    tr, va = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=CFG.seed).split(digits.data, digits.target))
    X = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    Y = torch.tensor(digits.target)
    Trainer((X[tr], Y[tr]), (X[va], Y[va])).fit()
