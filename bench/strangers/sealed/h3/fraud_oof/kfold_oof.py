import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, TensorDataset

SEED = 77
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(SEED)

X, y = make_classification(3000, 20, n_informative=9, n_clusters_per_class=3, weights=[0.93], flip_y=0.005, random_state=SEED)
X, y = X.astype(np.float32), y.astype(np.float32)


class Tab(nn.Module):
    def __init__(self, n, h=48):
        super().__init__()
        self.bn = nn.BatchNorm1d(n)
        self.f = nn.Sequential(nn.Linear(n, h), nn.ReLU(), nn.Dropout(0.1), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        return self.f(self.bn(x)).flatten()


def loader(idx, train):
    ds = TensorDataset(torch.from_numpy(X[idx]), torch.from_numpy(y[idx]))
    return DataLoader(ds, batch_size=100 if train else 500, shuffle=train, drop_last=train)


@torch.inference_mode()
def predict(model, idx):
    model.eval()
    parts = []
    for xb, _ in loader(idx, train=False):
        parts.append(torch.sigmoid(model(xb.to(device))).cpu())
    return torch.cat(parts).numpy()


def fit(tr, va):
    model = Tab(X.shape[1]).to(device)
    pos = torch.tensor((1 - y[tr].mean()) / y[tr].mean(), device=device).sqrt()
    crit = nn.BCEWithLogitsLoss(pos_weight=pos)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    for ep in range(6):
        model.train()
        losses = []
        for xb, yb in loader(tr, train=True):
            loss = crit(model(xb.to(device)), yb.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    p = predict(model, va)
    print(f"  last loss {np.mean(losses):.4f}  valid auc {roc_auc_score(y[va], p):.4f}")
    return model, p


hold = np.arange(2400, 3000)
oof, test_p = np.zeros(2400, dtype=np.float32), np.zeros(600, dtype=np.float32)
skf = StratifiedKFold(3, shuffle=True, random_state=SEED)
for k, (tr, va) in enumerate(skf.split(X[:2400], y[:2400])):
    print("fold", k)
    model, oof[va] = fit(tr, va)
    test_p += predict(model, hold) / 3

logit = lambda p: np.log(np.clip(p, 1e-5, 1 - 1e-5) / (1 - np.clip(p, 1e-5, 1 - 1e-5)))[:, None]
stack = LogisticRegression().fit(logit(oof), y[:2400])
final = stack.predict_proba(logit(test_p))[:, 1]
print(f"OOF auc {roc_auc_score(y[:2400], oof):.4f}  holdout auc {roc_auc_score(y[hold], final):.4f}  "
      f"holdout AP {average_precision_score(y[hold], final):.4f}")
