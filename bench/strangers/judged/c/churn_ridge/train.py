import random
import numpy as np
import torch
from torch import nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 2024
random.seed(SEED); np.random.seed(SEED); torch.manual_seed(SEED)

# ---- data ---------------------------------------------------------------
X, y = make_classification(n_samples=1500, n_features=20, n_informative=8, n_redundant=4,
                           weights=[0.7], class_sep=0.8, random_state=SEED)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED, stratify=y)
scaler = StandardScaler().fit(X_train)
to_t = lambda a: torch.tensor(a, dtype=torch.float32)
X_train, X_test = to_t(scaler.transform(X_train)), to_t(scaler.transform(X_test))
y_train, y_test = to_t(y_train), to_t(y_test)


# ---- model --------------------------------------------------------------
class ChurnNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 16), nn.ReLU())
        self.logit = nn.Linear(16, 1)

    def forward(self, x):
        return self.logit(self.body(x)).squeeze(1)


model = ChurnNet(X_train.shape[1])
pos_weight = (y_train == 0).sum() / (y_train == 1).sum()
bce = nn.BCEWithLogitsLoss(pos_weight=pos_weight)


@torch.no_grad()
def data_term(xb, yb):
    """loss and accuracy of one batch; shared by the training loop and by the report at the end"""
    out = model(xb)
    return bce(out, yb), ((out > 0).float() == yb).float().mean()


def ridge_term(lam=1e-3):
    return lam * sum(p.pow(2).sum() for n, p in model.named_parameters() if n.endswith("weight"))


# ---- training -----------------------------------------------------------
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    model.train()
    order = torch.randperm(len(X_train))
    losses, accs = [], []
    for chunk in order.split(64):
        data_loss, acc = data_term(X_train[chunk], y_train[chunk])
        objective = data_loss + ridge_term()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        losses.append(objective.item())
        accs.append(acc.item())
    print(f"epoch {epoch + 1:2d}: objective={np.mean(losses):.4f} acc={np.mean(accs):.3f}")

# ---- report -------------------------------------------------------------
model.eval()
test_loss, test_acc = data_term(X_test, y_test)
print(f"TEST loss={test_loss.item():.4f} acc={test_acc.item():.3f}")
