# # Customer churn - embeddings-free MLP with mean encodings
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 2024
np.random.seed(SEED)
torch.manual_seed(SEED)

# ## 1. Make the table
N = 3000
cust = np.random.randint(0, 1100, N)
city = np.random.randint(0, 400, N)
plan = np.random.randint(0, 5, N)
age = np.random.normal(40, 12, N)
spend = np.random.gamma(2.0, 30.0, N)
z = 0.03 * (age - 40) - 0.006 * (spend - 60) + 0.3 * (plan == 2) + np.random.normal(0, 1.5, N)
churn = (z > 0).astype(np.float32)

table = {"cust": cust, "city": city, "plan": plan, "age": age, "spend": spend, "churn": churn}


# ## 2. Feature engineering
def mean_encode(tbl, key, target="churn", prior=1.0):
    """smoothed mean of the target for every level of key"""
    glob = tbl[target].mean()
    levels, inv = np.unique(tbl[key], return_inverse=True)
    s = np.bincount(inv, weights=tbl[target], minlength=len(levels))
    c = np.bincount(inv, minlength=len(levels))
    return ((s + prior * glob) / (c + prior))[inv]


def count_encode(tbl, key):
    _, inv, cnt = np.unique(tbl[key], return_inverse=True, return_counts=True)
    return np.log1p(cnt[inv])


def add_features(tbl):
    out = dict(tbl)
    for key in ("cust", "city", "plan"):
        out[key + "_te"] = mean_encode(tbl, key)
        out[key + "_cnt"] = count_encode(tbl, key)
    return out


table = add_features(table)
feature_names = ["age", "spend", "cust_te", "city_te", "plan_te", "cust_cnt", "city_cnt"]

# ## 3. Hold-out
perm = np.random.permutation(N)
tr, va = perm[:2250], perm[2250:]
X = np.stack([table[f] for f in feature_names], 1).astype(np.float32)
y = table["churn"]
mu, sd = X[tr].mean(0), X[tr].std(0) + 1e-6
X = (X - mu) / sd

dl_tr = DataLoader(TensorDataset(torch.tensor(X[tr]), torch.tensor(y[tr])), batch_size=64, shuffle=True)
X_va, y_va = torch.tensor(X[va]), torch.tensor(y[va])

# ## 4. Model
net = nn.Sequential(nn.Linear(len(feature_names), 48), nn.ReLU(), nn.Dropout(0.1),
                    nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
crit = nn.BCEWithLogitsLoss()


def auc(score, truth):
    order = score.argsort()
    rank = torch.empty_like(score)
    rank[order] = torch.arange(1, len(score) + 1, dtype=score.dtype)
    pos = truth.sum()
    neg = len(truth) - pos
    return ((rank[truth == 1].sum() - pos * (pos + 1) / 2) / (pos * neg)).item()


# ## 5. Train
best = 0
for ep in range(12):
    net.train()
    tot = 0
    for xb, yb in dl_tr:
        opt.zero_grad()
        l = crit(net(xb).squeeze(1), yb)
        l.backward()
        opt.step()
        tot += l.item() * len(xb)
    net.eval()
    with torch.no_grad():
        p = net(X_va).squeeze(1)
    a = auc(p, y_va)
    best = max(best, a)
    print(f"ep {ep:2d}  train bce {tot / len(tr):.4f}  valid auc {a:.4f}")
print("CV score to report:", round(best, 4))
