import torch
from torch import nn
from torch.utils.data import DataLoader

from stream import GRID, HeatStream


def build(width=96):
    return nn.Sequential(
        nn.Linear(GRID + 1, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, GRID)
    )


def rel_l2(pred, true):
    return ((pred - true).norm(dim=1) / true.norm(dim=1).clamp_min(1e-6)).mean()


def main():
    torch.manual_seed(0)
    stream = HeatStream(seed=0, limit=12_800)
    loader = DataLoader(stream, batch_size=64, num_workers=2, persistent_workers=True)

    held_out = HeatStream(seed=10_000, limit=512)
    val_x, val_y = map(torch.stack, zip(*held_out))

    model = build()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for epoch in range(2):
        model.train()
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step:3d} mse {loss.item():.5f}")
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} validation rel-L2 {rel_l2(model(val_x), val_y).item():.4f}")


if __name__ == "__main__":
    main()
