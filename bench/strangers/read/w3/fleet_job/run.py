import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

from state import Checkpointer, Progress, RandomState

EPOCHS = 12


def job(path: Path, budget: int) -> list[float]:
    torch.manual_seed(64)
    x, y = (torch.tensor(a, dtype=torch.float32) for a in load_diabetes(return_X_y=True))
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(64))
    tr, va = order[:350], order[350:]
    x = (x - x[tr].mean(0)) / x[tr].std(0)
    y = (y - y[tr].mean()) / y[tr].std()
    shuffle = torch.Generator().manual_seed(65)
    loader = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=35, shuffle=True, generator=shuffle)
    model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Dropout(0.2), nn.Linear(32, 1), nn.Flatten(0))
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    sched = SequentialLR(opt, [LinearLR(opt, 0.2, total_iters=3), CosineAnnealingLR(opt, EPOCHS - 3, 1e-5)], milestones=[3])
    progress = Progress()
    ckpt = Checkpointer(path, model=model, opt=opt, sched=sched, progress=progress, rng=RandomState(shuffle))
    ckpt.resume()
    while progress.epoch < EPOCHS and budget > 0:
        model.train()
        for xb, yb in loader:
            opt.zero_grad()
            F.mse_loss(model(xb), yb).backward()
            opt.step()
        sched.step()
        model.eval()
        with torch.no_grad():
            progress.history.append(F.mse_loss(model(x[va]), y[va]).item())
        progress.epoch += 1
        budget -= 1
        ckpt.save()
    return progress.history


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as tmp:
        whole = job(Path(tmp, "whole.pt"), EPOCHS)
        for _ in range(3):
            pieces = job(Path(tmp, "pieces.pt"), 4)
    print(" ".join(f"{v:.4f}" for v in whole))
    print(" ".join(f"{v:.4f}" for v in pieces))
    print("identical:", whole == pieces)
