import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def transactions(n, seed, rate=0.03, dim=12):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(np.float32)
    x = rng.normal(0, 1, (n, dim))
    x[y == 1, :4] += 1.1
    x[y == 1, 4] *= 2.5
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def rebalancing_sampler(y):
    """frauds are drawn again and again until both kinds are equally frequent in a batch"""
    counts = torch.bincount(y.long())
    weights = (1.0 / counts)[y.long()]
    return WeightedRandomSampler(weights, num_samples=len(y), replacement=True)


class FraudNet(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 48), nn.LayerNorm(48), nn.ReLU(), nn.Dropout(0.2),
                                  nn.Linear(48, 24), nn.ReLU())
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def main():
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    x, y = transactions(4000, 1)
    train_dl = DataLoader(TensorDataset(x, y), batch_size=16, sampler=rebalancing_sampler(y))
    valid_dl = DataLoader(TensorDataset(*transactions(3000, 2)), batch_size=500)
    model = FraudNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, train_dl, valid_dl = accelerator.prepare(model, optimizer, train_dl, valid_dl)
    criterion = nn.BCEWithLogitsLoss()

    for epoch in range(5):
        model.train()
        running, share = 0.0, 0.0
        for xb, yb in train_dl:
            with accelerator.accumulate(model):
                loss = criterion(model(xb), yb)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            running += loss.item()
            share += yb.mean().item()
        model.eval()
        scores, truth = [], []
        for xb, yb in valid_dl:
            with torch.no_grad():
                s = model(xb)
            s, t = accelerator.gather_for_metrics((s, yb))
            scores.append(s)
            truth.append(t)
        ap = average_precision_score(torch.cat(truth), torch.cat(scores))
        accelerator.print(f"epoch {epoch} loss {running / len(train_dl):.3f} fraud share in batches "
                          f"{share / len(train_dl):.2f} valid average precision {ap:.3f}")


if __name__ == "__main__":
    main()
