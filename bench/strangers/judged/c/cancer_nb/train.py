# %% [markdown]
# # Breast cancer – small MLP with feature gating

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

torch.manual_seed(101)
np.random.seed(101)

# %%
raw = load_breast_cancer()
X_tr, X_te, y_tr, y_te = train_test_split(raw.data, raw.target, test_size=0.3, random_state=101, stratify=raw.target)
m, s = X_tr.mean(0), X_tr.std(0)
X_tr, X_te = (X_tr - m) / s, (X_te - m) / s
N, F = X_tr.shape
print(f"{N} patients, {F} features")

# %%
as_f32 = lambda a: torch.tensor(a, dtype=torch.float32)
Xt, yt = as_f32(X_tr), as_f32(y_tr)
Xv, yv = as_f32(X_te), as_f32(y_te)


# %%
class GatedMLP(nn.Module):
    """x -> sigmoid gate per feature -> two hidden layers"""

    def __init__(self, d, h=24):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(d))
        self.l1 = nn.Linear(d, h)
        self.l2 = nn.Linear(h, h)
        self.l3 = nn.Linear(h, 1)

    def forward(self, x):
        x = x * torch.sigmoid(self.gate)
        x = F.relu(self.l1(x))
        x = F.relu(self.l2(x))
        return self.l3(x).squeeze(-1)


clf = GatedMLP(F)
clf

# %%
opt = torch.optim.Adam(clf.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
hist = []
for epoch in range(30):
    clf.train()
    for idx in torch.randperm(N).split(32):
        opt.zero_grad()
        out = clf(Xt[idx])
        J = bce(out, yt[idx]) + 1e-3 * torch.sigmoid(clf.gate).sum()
        J.backward()
        opt.step()
    hist.append(J.item())

# %%
clf.eval()
with torch.no_grad():
    p = torch.sigmoid(clf(Xv)).numpy()
print("AUC on held-out patients:", roc_auc_score(y_te, p))
top = torch.sigmoid(clf.gate.detach()).topk(5).indices.tolist()
print("strongest gates:", [raw.feature_names[i] for i in top])
