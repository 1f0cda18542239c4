import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader

from readerlib import DigitSet, PlainDigitSet, fit, score

if __name__ == "__main__":
    torch.manual_seed(8)
    digits = load_digits()
    xtr, xte, ytr, yte = train_test_split(digits.images, digits.target, test_size=0.25, stratify=digits.target,
                                          random_state=8)
    train_loader = DataLoader(DigitSet(xtr, ytr), batch_size=64, shuffle=True)
    seen_loader = DataLoader(PlainDigitSet(xtr, ytr), batch_size=256)
    test_loader = DataLoader(PlainDigitSet(xte, yte), batch_size=256)
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                          nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 16, 10))

    def report(epoch, m):
        print(f"epoch {epoch}: train {score(m, seen_loader):.3f} test {score(m, test_loader):.3f}")

    fit(model, train_loader, epochs=6, lr=0.05, on_epoch=report)
    torch.save(model.state_dict(), "reader.pt")
