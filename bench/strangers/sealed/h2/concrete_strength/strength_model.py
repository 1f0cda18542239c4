# Concrete compressive strength - tabular regression (notebook export)
import numpy as np
import torch
from torch import nn
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED = 21
np.random.seed(SEED)
torch.manual_seed(SEED)

# %% data
X, strength = make_friedman1(n_samples=900, n_features=8, noise=0.6, random_state=SEED)
X_train, X_test, s_train, s_test = train_test_split(X, strength, test_size=0.2, random_state=SEED)

x_scaler = StandardScaler().fit(X_train)
s_scaler = StandardScaler().fit(s_train.reshape(-1, 1))


def as_tensors(X, s):
    x = torch.tensor(x_scaler.transform(X), dtype=torch.float32)
    t = torch.tensor(s_scaler.transform(s.reshape(-1, 1)), dtype=torch.float32)
    return x, t


train_ds = TensorDataset(*as_tensors(X_train, s_train))
test_ds = TensorDataset(*as_tensors(X_test, s_test))
loader = DataLoader(train_ds, batch_size=32, shuffle=True)


# %% model
class StrengthNet(nn.Module):
    def __init__(self, n_in, hidden=(64, 32), p=0.05):
        super().__init__()
        layers = []
        for h in hidden:
            layers += [nn.Linear(n_in, h), nn.GELU(), nn.Dropout(p)]
            n_in = h
        self.trunk = nn.Sequential(*layers)
        self.head = nn.Linear(n_in, 1)

    def forward(self, x):
        return self.head(self.trunk(x)).squeeze(-1)


def log_cosh(pred, target):
    """Smooth version of the absolute error, robust to the odd bad lab measurement."""
    diff = pred - target
    return (diff + nn.functional.softplus(-2 * diff) - np.log(2)).mean()


net = StrengthNet(X.shape[1])
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=6e-3, steps_per_epoch=len(loader), epochs=20)


# %% training
def test_r2():
    net.eval()
    with torch.no_grad():
        pred = net(test_ds.tensors[0]).numpy()
    mpa = s_scaler.inverse_transform(pred.reshape(-1, 1)).ravel()
    return r2_score(s_test, mpa)


for epoch in range(20):
    net.train()
    seen, acc_loss = 0, 0.0
    for x, t in loader:
        opt.zero_grad()
        loss = log_cosh(net(x), t)
        loss.backward()
        opt.step()
        sched.step()
        acc_loss += loss.item() * len(x)
        seen += len(x)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}: train {acc_loss / seen:.4f}   test R2 {test_r2():.3f}")
