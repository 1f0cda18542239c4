import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from prepare import load_transactions

SEED = 2024


def loaders(batch_size=128):
    X, y = load_transactions()
    X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.25, stratify=y, random_state=SEED)
    scaler = StandardScaler().fit(X_tr)
    sets = [
        TensorDataset(torch.from_numpy(scaler.transform(a)).float(), torch.from_numpy(b))
        for a, b in ((X_tr, y_tr), (X_va, y_va))
    ]
    return DataLoader(sets[0], batch_size=batch_size, shuffle=True), DataLoader(sets[1], batch_size=512)


def main():
    set_seed(SEED)
    accelerator = Accelerator(cpu=True)
    train_dl, valid_dl = loaders()
    model = nn.Sequential(
        nn.Linear(20, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1),
        nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1),
    )
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    model, opt, train_dl, valid_dl = accelerator.prepare(model, opt, train_dl, valid_dl)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(12):
        model.train()
        for xb, yb in train_dl:
            opt.zero_grad()
            loss = criterion(model(xb).squeeze(1), yb)
            accelerator.backward(loss)
            opt.step()
        model.eval()
        probs, truth = [], []
        with torch.no_grad():
            for xb, yb in valid_dl:
                p, t = accelerator.gather_for_metrics((model(xb).squeeze(1).sigmoid(), yb))
                probs.append(p)
                truth.append(t)
        p, t = torch.cat(probs).numpy(), torch.cat(truth).numpy()
        accelerator.print(
            f"epoch {epoch:2d} loss {loss.item():.3f} AUC {roc_auc_score(t, p):.4f} AP {average_precision_score(t, p):.4f}"
        )


if __name__ == "__main__":
    main()
