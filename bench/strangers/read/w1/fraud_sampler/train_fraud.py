import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import RobustScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

SEED = 2024
LOADER = {"batch_size": 128, "num_workers": 0, "pin_memory": torch.cuda.is_available()}
PHASE = {
    "fit": {"shuffle": True, "drop_last": True},
    "eval": {"shuffle": False, "drop_last": False},
}


def seed_everything(s):
    np.random.seed(s)
    torch.manual_seed(s)


def balanced(labels):
    freq = np.bincount(labels)
    w = 1.0 / freq[labels]
    return WeightedRandomSampler(torch.as_tensor(w, dtype=torch.double), num_samples=len(labels), replacement=True)


def get_loader(x, y, phase, **extra):
    ds = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    return DataLoader(ds, **{**LOADER, **PHASE[phase], **extra})


class FraudMLP(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm1d(d), nn.Linear(d, 64), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


@torch.inference_mode()
def predict(model, loader, device):
    model.eval()
    return np.concatenate([model(x.to(device)).sigmoid().cpu().numpy() for x, _ in loader])


def main():
    seed_everything(SEED)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, y = make_classification(6000, 24, n_informative=6, weights=[0.97], class_sep=1.2, random_state=SEED)
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, stratify=y, random_state=SEED)
    scaler = RobustScaler().fit(X_tr)
    X_tr, X_va = scaler.transform(X_tr), scaler.transform(X_va)
    train_loader = get_loader(X_tr, y_tr, "fit", sampler=balanced(y_tr))
    valid_loader = get_loader(X_va, y_va, "eval")

    model = FraudMLP(X.shape[1]).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    bce = nn.BCEWithLogitsLoss()
    best = 0.0
    for epoch in range(5):
        model.train()
        for xb, yb in train_loader:
            xb, yb = xb.to(device), yb.to(device)
            opt.zero_grad(set_to_none=True)
            loss = bce(model(xb), yb)
            loss.backward()
            opt.step()
        ap = average_precision_score(y_va, predict(model, valid_loader, device))
        print(f"epoch {epoch} AP={ap:.4f}")
        if ap > best:
            best = ap
            torch.save(model.state_dict(), "/tmp/fraud_w1.pt")


if __name__ == "__main__":
    main()
