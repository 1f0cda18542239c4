"""Three tasks and a constant regulariser in one loss; Lightning's sparse metrics.csv."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from training import digits, minibatches, mlp, seed, write_csv


class Tasks(nn.Module):
    """Class, centre of mass and a copy of the picture from one shared layer."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(48, 10), nn.Linear(48, 2), mlp(48, 64)])
        self.register_buffer("places", torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0)))

    def losses(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.shared(x)
        ink = (x + 0.5) / (x + 0.5).sum(1, keepdim=True)
        centre = ink @ self.places - 3.5
        parts = {
            "cls_loss": functional.cross_entropy(self.heads[0](hidden), y),
            "box_loss": functional.smooth_l1_loss(self.heads[1](hidden), centre),
            "mask_loss": functional.mse_loss(self.heads[2](hidden), x),
            "reg_loss": 1e-4 * sum(p.pow(2).sum() for p in self.parameters()),
        }
        return {**parts, "loss": sum(parts.values())}


def make(folder: Path) -> None:
    seed(14)
    data, model = digits(), Tasks()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
    rows, step = [], 0
    for epoch in range(25):
        for batch in minibatches(len(data.x), 30):
            losses = model.losses(data.x[batch], data.y[batch])
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            if step % 10 == 9:
                logged = {f"train/{k}": f"{v.item():.6f}" for k, v in losses.items()}
                rows.append({"epoch": epoch, "step": step, **logged})
            step += 1
        with torch.no_grad():
            losses = model.losses(data.x_val, data.y_val)
        logged = {f"val/{k}": f"{v.item():.6f}" for k, v in losses.items() if k != "reg_loss"}
        rows.append({"epoch": epoch, "step": step - 1, **logged})
    write_csv(folder / "metrics.csv", rows)
    (folder / "hparams.yaml").write_text(
        "lr: 0.0015\nweight_decay: 0.01\nreg: 0.0001\nhidden: 48\n"
    )
