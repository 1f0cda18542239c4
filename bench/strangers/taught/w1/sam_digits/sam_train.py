import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class SAM:
    """Sharpness-aware minimisation (Foret et al. 2021) around any optimizer."""

    def __init__(self, params, base, rho=0.05):
        self.params = [p for p in params]
        self.base = base
        self.rho = rho
        self.eps = {}

    @torch.no_grad()
    def ascend(self):
        norm = torch.norm(torch.stack([p.grad.norm() for p in self.params if p.grad is not None])) + 1e-12
        for p in self.params:
            if p.grad is None:
                continue
            e = p.grad * (self.rho / norm)
            p.add_(e)
            self.eps[p] = e
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in self.eps.items():
            p.sub_(e)
        self.eps.clear()
        self.base.step()
        self.base.zero_grad()


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    Xtr, Xte, ytr, yte = train_test_split(X / 16, y, test_size=0.25, stratify=y, random_state=1)
    Xtr, Xte = (torch.tensor(a, dtype=torch.float32).view(-1, 1, 8, 8) for a in (Xtr, Xte))
    ytr, yte = torch.tensor(ytr), torch.tensor(yte)

    net = ConvNet()
    base = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    sam = SAM(net.parameters(), base)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(base, factor=0.5, patience=1)
    for epoch in range(10):
        net.train()
        total = 0.0
        for idx in torch.randperm(len(Xtr)).split(64):
            loss = F.cross_entropy(net(Xtr[idx]), ytr[idx])
            loss.backward()
            sam.ascend()
            F.cross_entropy(net(Xtr[idx]), ytr[idx]).backward()
            sam.descend()
            total += loss.item() * len(idx)
        plateau.step(total / len(Xtr))
        net.eval()
        with torch.no_grad():
            acc = (net(Xte).argmax(1) == yte).float().mean().item()
        print(f"epoch {epoch} loss {total / len(Xtr):.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
