import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sam import SAM


def tensors(seed=90):
    X, y = make_classification(1500, 20, n_informative=8, n_classes=3, flip_y=0.1, random_state=seed)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    s = StandardScaler().fit(Xa)
    f = lambda a, b: TensorDataset(torch.tensor(s.transform(a), dtype=torch.float32), torch.tensor(b))
    return f(Xa, ya), f(Xb, yb)


def main():
    torch.manual_seed(90)
    train, test = tensors()
    loader, test_loader = DataLoader(train, 50, shuffle=True), DataLoader(test, 150)
    net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    criterion = nn.CrossEntropyLoss()
    opt = SAM(net.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)
    for epoch in range(10):
        net.train()
        running = 0.0
        for x, y in loader:
            def closure():
                loss = criterion(net(x), y)
                loss.backward()
                return loss

            running += opt.step(closure).item() * len(y)
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
        print(f"{epoch} loss {running / len(train):.4f} test acc {right / len(test):.4f}")


if __name__ == "__main__":
    main()
