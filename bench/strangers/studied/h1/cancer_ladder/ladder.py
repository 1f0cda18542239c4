import math

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


class LadderNet(nn.Module):
    def __init__(self, n_in, widths=(64, 48, 32), n_out=2):
        super().__init__()
        dims = [n_in, *widths]
        self.rungs = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        self.exits = nn.ModuleList(nn.Linear(w, n_out) for w in widths)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, math.sqrt(2.0 / m.in_features))
            nn.init.zeros_(m.bias)

    def forward(self, x):
        outs = []
        for rung, exit_ in zip(self.rungs, self.exits):
            x = torch.relu(rung(x))
            outs.append(exit_(x))
        return outs


def ladder_loss(outs, y, weights=(0.2, 0.3, 0.5)):
    return sum(w * nn.functional.cross_entropy(o, y) for w, o in zip(weights, outs))


def main(epochs=8, batch=32, lr=0.01):
    torch.manual_seed(42)
    X, y = load_breast_cancer(return_X_y=True)
    Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.3, random_state=42, stratify=y)
    scaler = StandardScaler().fit(Xtr)
    Xtr, Xte = (torch.tensor(scaler.transform(a), dtype=torch.float32) for a in (Xtr, Xte))
    ytr, yte = torch.tensor(ytr), torch.tensor(yte)

    net = LadderNet(X.shape[1])
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for idx in torch.randperm(len(Xtr)).split(batch):
            loss = ladder_loss(net(Xtr[idx]), ytr[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        net.eval()
        with torch.no_grad():
            accs = [(o.argmax(1) == yte).float().mean().item() for o in net(Xte)]
        print(f"epoch {epoch}: loss {total / len(Xtr):.4f}  exits " + " ".join(f"{a:.3f}" for a in accs))


if __name__ == "__main__":
    main()
