import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

SEED = 2024
N_FOLDS = 3
EPOCHS = 6
BATCH = 128


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


class F1Loss(nn.Module):
    """1 - F1 on the batch, the competition metric is F1 so optimise it directly."""

    def __init__(self, thr=0.5, eps=1e-7):
        super().__init__()
        self.thr, self.eps = thr, eps

    def forward(self, logits, target):
        pred = (torch.sigmoid(logits) > self.thr).float().requires_grad_()
        tp = (pred * target).sum()
        fp = (pred * (1 - target)).sum()
        fn = ((1 - pred) * target).sum()
        return 1 - 2 * tp / (2 * tp + fp + fn + self.eps)


class FraudMLP(nn.Module):
    def __init__(self, n_in, n_hidden=64, p=0.2):
        super().__init__()
        self.seq = nn.Sequential(
            nn.Linear(n_in, n_hidden), nn.BatchNorm1d(n_hidden), nn.SiLU(), nn.Dropout(p),
            nn.Linear(n_hidden, n_hidden // 2), nn.BatchNorm1d(n_hidden // 2), nn.SiLU(),
            nn.Linear(n_hidden // 2, 1))

    def forward(self, x):
        return self.seq(x).squeeze(1)


def train_fold(x_tr, y_tr, x_va, y_va):
    model = FraudMLP(x_tr.shape[1])
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = F1Loss()
    for ep in range(EPOCHS):
        model.train()
        losses = []
        for idx in torch.randperm(len(x_tr)).split(BATCH):
            if len(idx) < 2:
                continue
            opt.zero_grad()
            loss = criterion(model(x_tr[idx]), y_tr[idx])
            loss.backward()
            opt.step()
            losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        prob = torch.sigmoid(model(x_va)).numpy()
    print(f"  last train loss {np.mean(losses):.4f}  valid F1 {f1_score(y_va, prob > 0.5):.4f}")
    return prob


if __name__ == "__main__":
    seed_everything(SEED)
    X, y = make_classification(n_samples=3000, n_features=20, n_informative=8, weights=[0.8],
                               class_sep=1.2, random_state=SEED)
    oof = np.zeros(len(y))
    for fold, (tr, va) in enumerate(StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED).split(X, y)):
        print(f"fold {fold}")
        sc = StandardScaler().fit(X[tr])
        oof[va] = train_fold(torch.tensor(sc.transform(X[tr]), dtype=torch.float32),
                             torch.tensor(y[tr], dtype=torch.float32),
                             torch.tensor(sc.transform(X[va]), dtype=torch.float32), y[va])
    print(f"OOF F1 {f1_score(y, oof > 0.5):.4f}  precision {precision_score(y, oof > 0.5):.4f} "
          f"recall {recall_score(y, oof > 0.5):.4f}")
