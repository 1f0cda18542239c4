import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import TensorDataset, DataLoader
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

"""
Keras -> PyTorch exercise: disease progression, the 64-32-1 network from my old notebook.
Baseline there: MAE 44, linear regression MAE 43.
"""

torch.manual_seed(1)
np.random.seed(1)

X, y = load_diabetes(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=1)

xs = StandardScaler().fit(X_train)
y_mean, y_std = y_train.mean(), y_train.std()


def to_loader(X, y, shuffle):
    X = torch.tensor(xs.transform(X), dtype=torch.float32)
    y = torch.tensor((y - y_mean) / y_std, dtype=torch.float32)
    return DataLoader(TensorDataset(X, y), batch_size=32, shuffle=shuffle)


train_loader = to_loader(X_train, y_train, True)
val_loader = to_loader(X_val, y_val, False)

model = nn.Sequential(
    nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(64, 32), nn.ReLU(),
    nn.Linear(32, 1),
)
loss_fn = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def fit_one_epoch():
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb.unsqueeze(1))
        loss.backward()
        optimizer.step()
        total += loss.item() * xb.size(0)
    return total / len(train_loader.dataset)


def evaluate():
    """MSE (standardised) and MAE / R2 in the original units."""
    model.eval()
    preds, targets = [], []
    with torch.no_grad():
        for xb, yb in val_loader:
            preds.append(model(xb))
            targets.append(yb)
    preds, targets = torch.cat(preds), torch.cat(targets)
    mse = loss_fn(preds, targets.unsqueeze(1)).item()
    p = preds.numpy() * y_std + y_mean
    t = targets.numpy() * y_std + y_mean
    mae = np.abs(p - t).mean()
    r2 = 1 - ((p - t) ** 2).mean() / t.var()
    return mse, mae, r2


for epoch in range(40):
    train_mse = fit_one_epoch()
    if (epoch + 1) % 5 == 0:
        mse, mae, r2 = evaluate()
        print(f"Epoch {epoch + 1:3d} - loss: {train_mse:.4f} - val_loss: {mse:.4f} - val_mae: {mae:.2f} - val_r2: {r2:.3f}")
