import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from modes import evaluating

K, D = 8, 30


def leaves(n, seed):
    protos = 1.2 * torch.randn(K, D, generator=torch.Generator().manual_seed(100))
    scale = torch.logspace(-1, 1.3, D)
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(K, (n,), generator=g)
    return (protos[y] + 1.5 * torch.randn(n, D, generator=g)) * scale + 3 * scale, y


class LeafNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.norm_in = nn.BatchNorm1d(D)
        self.hidden = nn.Sequential(
            nn.Linear(D, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.4),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.4),
        )
        self.out = nn.Linear(width, K)

    def forward(self, x):
        return self.out(self.hidden(self.norm_in(x)))


def score(model, loader):
    with evaluating(model) as m:
        correct = loss = n = 0
        for x, y in loader:
            logits = m(x)
            loss += nn.functional.cross_entropy(logits, y, reduction="sum").item()
            correct += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss / n, correct / n


def main():
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*leaves(400, 1)), batch_size=40, shuffle=True)
    valid = DataLoader(TensorDataset(*leaves(400, 2)), batch_size=200)
    model = LeafNet()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)

    loss, acc = score(model, valid)
    print(f"before training: valid loss {loss:.3f} acc {acc:.3f}")
    model.train()
    for epoch in range(12):
        for step, (x, y) in enumerate(train):
            opt.zero_grad()
            batch_loss = nn.functional.cross_entropy(model(x), y)
            batch_loss.backward()
            opt.step()
            if step % 5 == 0:
                loss, acc = score(model, valid)
        print(f"epoch {epoch:2d} train {batch_loss.item():.3f} valid {loss:.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
