import torch
from torch import nn
from torch.utils.data import DataLoader

from dataset import ClickLog
from model import ClickModel


def evaluate(model, loader, criterion):
    model.eval()
    ys, zs = [], []
    with torch.no_grad():
        for seg, item, hist, click in loader:
            zs.append(model(seg, item, hist))
            ys.append(click)
    y, z = torch.cat(ys), torch.cat(zs)
    return criterion(z, y).item(), ((z > 0).float() == y).float().mean().item()


def main():
    torch.manual_seed(0)
    train, test = ClickLog(6000, seed=0), ClickLog(1500, seed=1)
    train_dl = DataLoader(train, batch_size=128, shuffle=True)
    test_dl = DataLoader(test, batch_size=512)
    model = ClickModel(train.n_items, 4)
    criterion = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        seen, total = 0, 0.0
        for seg, item, hist, click in train_dl:
            opt.zero_grad()
            loss = criterion(model(seg, item, hist), click)
            loss.backward()
            opt.step()
            total += loss.item() * len(click)
            seen += len(click)
        val_loss, val_acc = evaluate(model, test_dl, criterion)
        print(f"epoch {epoch} logloss {total / seen:.4f} test {val_loss:.4f} acc {val_acc:.4f}")


if __name__ == "__main__":
    main()
