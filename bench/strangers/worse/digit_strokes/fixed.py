import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

SEED = 0


class DigitFolder(Dataset):
    """Images grouped the way they come from the per-class folders."""

    def __init__(self, split):
        digits = load_digits()
        order = np.random.default_rng(0).permutation(len(digits.target))
        keep = order[:1400] if split == "train" else order[1400:]
        self.items = []
        for label in range(10):
            for i in keep[digits.target[keep] == label]:
                self.items.append((digits.images[i] / 16.0, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        img, label = self.items[i]
        return torch.tensor(img, dtype=torch.float32)[None], label


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


def evaluate(model, loader, criterion):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, hits / n


def main():
    torch.manual_seed(SEED)
    train_loader = DataLoader(DigitFolder("train"), batch_size=128, shuffle=True)
    test_loader = DataLoader(DigitFolder("test"), batch_size=100)
    model = SmallCNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(30):
        model.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        test_loss, test_acc = evaluate(model, test_loader, criterion)
        print(f"epoch {epoch + 1:2d}  train loss {running / len(train_loader):.4f}  "
              f"test loss {test_loss:.4f}  test acc {test_acc:.4f}")


if __name__ == "__main__":
    main()
