"""Shared-bottom model: predicts click (binary), watch time (minutes) and rating bucket for a video session."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from balancer import LossBalancer

torch.manual_seed(11)
N, D = 8000, 24


def synth():
    x = torch.randn(N, D)
    w = torch.randn(D, 3) / D ** 0.5
    s = torch.tanh(x @ w)
    click = (s[:, 0] + 0.3 * torch.randn(N) > 0).float()
    watch = 20 + 15 * s[:, 1] + torch.randn(N)
    bucket = torch.bucketize(s[:, 2], torch.tensor([-0.5, 0.0, 0.5]))
    return TensorDataset(x, click, watch, bucket)


class SharedBottom(nn.Module):
    def __init__(self, d, h=64):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(d, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        tower = lambda k: nn.Sequential(nn.Linear(h, 32), nn.ReLU(), nn.Linear(32, k))
        self.towers = nn.ModuleDict({"click": tower(1), "watch": tower(1), "bucket": tower(4)})

    def forward(self, x):
        h = self.bottom(x)
        return {k: t(h) for k, t in self.towers.items()}


def task_losses(out, click, watch, bucket):
    return {
        "click": nn.functional.binary_cross_entropy_with_logits(out["click"].squeeze(-1), click),
        "watch": nn.functional.huber_loss(out["watch"].squeeze(-1), watch),
        "bucket": nn.functional.cross_entropy(out["bucket"], bucket),
    }


def evaluate(model, loader):
    model.eval()
    sums, n = {}, 0
    with torch.no_grad():
        for x, *targets in loader:
            for k, v in task_losses(model(x), *targets).items():
                sums[k] = sums.get(k, 0.0) + v.item() * len(x)
            n += len(x)
    return {k: round(v / n, 4) for k, v in sums.items()}


def main():
    train_set, val_set = random_split(synth(), [7000, 1000])
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=500)
    model = SharedBottom(D)
    balancer = LossBalancer(["click", "watch", "bucket"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)

    for epoch in range(8):
        model.train()
        for x, *targets in train_loader:
            optimizer.zero_grad()
            loss = balancer(task_losses(model(x), *targets))
            loss.backward()
            optimizer.step()
        scheduler.step()
        print(epoch, evaluate(model, val_loader))


if __name__ == "__main__":
    main()
