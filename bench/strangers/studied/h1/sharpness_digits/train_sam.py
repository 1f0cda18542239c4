import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from sam import SAM


def get_loaders(batch=64):
    x, y = load_digits(return_X_y=True)
    ds = TensorDataset(torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y))
    tr, te = random_split(ds, [1300, len(ds) - 1300], generator=torch.Generator().manual_seed(0))
    return DataLoader(tr, batch, shuffle=True), DataLoader(te, 500)


def main():
    torch.manual_seed(0)
    train, test = get_loaders()
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    criterion = nn.CrossEntropyLoss()
    opt = SAM(torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), rho=0.05)
    for epoch in range(5):
        net.train()
        total = 0.0
        for x, y in train:
            loss = criterion(net(x), y)
            loss.backward()
            opt.climb()
            criterion(net(x), y).backward()
            opt.descend()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            acc = sum((net(x).argmax(1) == y).sum().item() for x, y in test) / len(test.dataset)
        print(f"epoch {epoch}  loss {total / len(train):.4f}  acc {acc:.3f}")


if __name__ == "__main__":
    main()
