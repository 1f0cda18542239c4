import argparse

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn

from experts import MixtureOfClassifiers


def balance(usage):
    """Pushes the mean gate towards equal use (KL from uniform)."""
    k = usage.numel()
    return (usage * (usage * k).log()).sum()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--experts", type=int, default=4)
    p.add_argument("--balance", type=float, default=0.1)
    p.add_argument("--epochs", type=int, default=15)
    args = p.parse_args()

    torch.manual_seed(0)
    X, y = make_classification(2000, n_features=16, n_informative=8, n_classes=5, n_clusters_per_class=2,
                               class_sep=1.2, random_state=4)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, random_state=0)
    X_tr, X_te = (torch.tensor(a, dtype=torch.float32) for a in (X_tr, X_te))
    y_tr, y_te = torch.tensor(y_tr), torch.tensor(y_te)

    model = MixtureOfClassifiers(16, 5, args.experts)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(X_tr)).split(64):
            loss = criterion(model(X_tr[idx]), y_tr[idx]) + args.balance * balance(model.usage(X_tr[idx]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                logp = model(X_te)
                acc = (logp.argmax(1) == y_te).float().mean().item()
                print(f"epoch {epoch}: loss {loss.item():.3f} test nll {criterion(logp, y_te).item():.3f} acc {acc:.3f}",
                      [round(u, 2) for u in model.usage(X_te).tolist()])


if __name__ == "__main__":
    main()
