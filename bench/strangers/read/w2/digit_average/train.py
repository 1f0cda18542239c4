import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

from ema import AveragedModel


class Digits(Dataset):
    def __init__(self, x, y, shift):
        self.x, self.y, self.shift = x, y, shift

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if self.shift:
            dy, dx = torch.randint(-1, 2, (2,)).tolist()
            img = torch.roll(img, (dy, dx), (1, 2))
        return img, self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1, stride=2), nn.BatchNorm2d(24), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 10),
        )

    def forward(self, x):
        return self.f(x)


@torch.inference_mode()
def accuracy(model, loader):
    mode = model.training
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(mode)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    d = load_digits()
    x = torch.tensor(d.images / 16.0, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(d.target)
    order = rng.permutation(len(y))
    tr, va = order[:1400], order[1400:]
    train = DataLoader(Digits(x[tr], y[tr], shift=True), batch_size=64, shuffle=True)
    val = DataLoader(Digits(x[va], y[va], shift=False), batch_size=200)

    model = Net()
    average = AveragedModel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4)
    model.train()
    for epoch in range(6):
        for xb, yb in train:
            loss = nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
        print(f"epoch {epoch} raw {accuracy(model, val):.3f} averaged {accuracy(average.shadow, val):.3f}")
    torch.save({"model": average.shadow.state_dict()}, "/tmp/w2_digit_average.pt")


if __name__ == "__main__":
    main()
