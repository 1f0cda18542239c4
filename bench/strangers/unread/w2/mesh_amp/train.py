"""Surrogate for a drag coefficient from a handful of surface points (PointNet style)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from precision import ScaledStepper


def bodies(n, seed, points=40):
    g = torch.Generator().manual_seed(seed)
    axes = 0.5 + torch.rand(n, 1, 3, generator=g)
    direction = nn.functional.normalize(torch.randn(n, points, 3, generator=g), dim=-1)
    drag = axes[:, 0, 1] * axes[:, 0, 2] / axes[:, 0, 0].sqrt()
    return direction * axes, drag


class PointNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.local = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.globl = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, pts):
        return self.globl(self.local(pts).amax(1)).squeeze(-1)


def main():
    torch.manual_seed(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(TensorDataset(*bodies(660, 1)), batch_size=20, shuffle=True)
    val = DataLoader(TensorDataset(*bodies(200, 2)), batch_size=100)
    model = PointNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    epochs, accumulate = 14, 4
    updates = epochs * -(-len(train) // accumulate)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=updates)
    step = ScaledStepper(model, opt, sched, device, accumulate, max_norm=1.0)
    for epoch in range(epochs):
        model.train()
        for pts, drag in train:
            with step.autocast():
                pred = model(pts.to(device))
            step(nn.functional.huber_loss(pred.float(), drag.to(device)))
        step.flush()
        model.eval()
        with torch.no_grad():
            err = torch.cat([(model(p.to(device)).cpu() - d).abs() for p, d in val]).mean().item()
        print(f"epoch {epoch} val MAE {err:.4f} scale {step.scaler.get_scale():.0f} skipped {step.skipped}")


if __name__ == "__main__":
    main()
