"""Multi-label findings from precomputed fundus embeddings. Several findings may be present."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score
from torch.utils.data import DataLoader, TensorDataset

FINDINGS = ["drusen", "hemorrhage", "exudate", "edema"]


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    w = np.random.default_rng(7).normal(size=(32, len(FINDINGS)))
    x = rng.normal(size=(n, 32))
    y = (x @ w + rng.normal(size=(n, len(FINDINGS))) > 4.0).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


class FindingNet(nn.Module):
    def __init__(self, d_in, n_out):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1))
        self.head = nn.Linear(64, n_out)

    def forward(self, x):
        logits = self.head(self.body(x))
        return {"logits": logits, "probs": torch.sigmoid(logits)}


def asymmetric_loss(probs, y, gamma_neg=2.0, clip=0.05, eps=1e-6):
    """Ridnik et al. 2021; works on probabilities."""
    p_neg = (1 - probs + clip).clamp(max=1)
    pos = y * torch.log(probs.clamp(min=eps))
    neg = (1 - y) * torch.log(p_neg.clamp(min=eps)) * (1 - p_neg).pow(gamma_neg)
    return -(pos + neg).mean()


class Objective(nn.Module):
    def __init__(self, pos_weight, mix=0.3):
        super().__init__()
        self.bce = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
        self.mix = mix

    def forward(self, out, y):
        return (1 - self.mix) * self.bce(out["logits"], y) + self.mix * asymmetric_loss(out["probs"], y)


def evaluate(net, loader):
    net.eval()
    p, t = [], []
    with torch.no_grad():
        for x, y in loader:
            p.append(net(x)["probs"])
            t.append(y)
    return average_precision_score(torch.cat(t).numpy(), torch.cat(p).numpy(), average="macro")


def main():
    torch.manual_seed(0)
    x, y = simulate(3000, 0)
    train_dl = DataLoader(TensorDataset(x, y), 64, shuffle=True)
    val_dl = DataLoader(TensorDataset(*simulate(800, 1)), 400)
    prevalence = y.mean(0)
    objective = Objective(pos_weight=(1 - prevalence) / prevalence)
    net = FindingNet(32, len(FINDINGS))
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    print(f"before: mAP {evaluate(net, val_dl):.3f}")
    for epoch in range(8):
        net.train()
        tot = 0.0
        for xb, yb in train_dl:
            loss = objective(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        print(f"epoch {epoch} loss {tot / len(train_dl):.4f} mAP {evaluate(net, val_dl):.3f}")


if __name__ == "__main__":
    main()
