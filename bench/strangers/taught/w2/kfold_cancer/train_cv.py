import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

SEED = 42
torch.manual_seed(SEED)
np.random.seed(SEED)


class model(nn.Module):
    def __init__(self, num_features, hidden=64):
        super().__init__()
        self.dense1 = nn.Linear(num_features, hidden)
        self.norm1 = nn.BatchNorm1d(hidden)
        self.dense2 = nn.Linear(hidden, hidden)
        self.norm2 = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.25)
        self.final = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.drop(torch.relu(self.norm1(self.dense1(x))))
        x = self.drop(torch.relu(self.norm2(self.dense2(x))))
        return self.final(x).squeeze(-1)


def loader(X, y, bs, shuffle):
    ds = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32),
                                        torch.tensor(y, dtype=torch.float32))
    return torch.utils.data.DataLoader(ds, batch_size=bs, shuffle=shuffle, drop_last=shuffle)


def train_fn(net, dl, opt, loss_fn):
    net.train()
    total = 0.0
    for xb, yb in dl:
        opt.zero_grad()
        loss = loss_fn(net(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(dl)


def predict_fn(net, dl):
    net.eval()
    out = []
    with torch.no_grad():
        for xb, _ in dl:
            out.append(torch.sigmoid(net(xb)))
    return torch.cat(out).numpy()


X, y = load_breast_cancer(return_X_y=True)
oof = np.zeros(len(y))
skf = StratifiedKFold(n_splits=5, shuffle=True, random_state=SEED)

for fold, (tr, va) in enumerate(skf.split(X, y)):
    scaler = StandardScaler().fit(X[tr])
    train_dl = loader(scaler.transform(X[tr]), y[tr], 32, True)
    valid_dl = loader(scaler.transform(X[va]), y[va], 128, False)

    model = model(X.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    loss_fn = nn.BCEWithLogitsLoss()

    for epoch in range(15):
        tl = train_fn(model, train_dl, optimizer, loss_fn)
    oof[va] = predict_fn(model, valid_dl)
    print(f"fold {fold} | train loss {tl:.4f} | auc {roc_auc_score(y[va], oof[va]):.4f}")

print("OOF AUC", roc_auc_score(y, oof))
