import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED = 0
EPOCHS = 20


class PanelNet(nn.Module):
    """Expression panel -> tissue type."""

    def __init__(self, n_genes, n_classes, width=64, p=0.1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(0.0),
            nn.Linear(n_genes, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, n_classes),
        )

    def forward(self, x):
        return self.layers(x)


def load():
    x, y = make_classification(n_samples=4000, n_features=40, n_informative=12, n_redundant=6,
                               n_classes=6, n_clusters_per_class=2, class_sep=1.4,
                               flip_y=0.0, random_state=3)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.25, random_state=3)
    sc = StandardScaler().fit(x_tr)
    as_ds = lambda a, b: TensorDataset(torch.tensor(sc.transform(a), dtype=torch.float32), torch.tensor(b))
    return as_ds(x_tr, y_tr), as_ds(x_te, y_te)


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total, correct, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for xb, yb in loader:
            out = model(xb)
            loss = criterion(out, yb)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(yb)
            correct += (out.argmax(1) == yb).sum().item()
            n += len(yb)
    return total / n, correct / n


def main():
    torch.manual_seed(SEED)
    train_ds, test_ds = load()
    train_loader = DataLoader(train_ds, batch_size=64, shuffle=True)
    test_loader = DataLoader(test_ds, batch_size=500)
    model = PanelNet(40, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, EPOCHS + 1):
        tl, ta = run_epoch(model, train_loader, criterion, optimizer)
        vl, va = run_epoch(model, test_loader, criterion)
        print(f"Epoch {epoch:02d} | train loss {tl:.4f} acc {ta:.3f} | test loss {vl:.4f} acc {va:.4f}")


if __name__ == "__main__":
    main()
