"""METR-LA speed forecasting: 12 steps in, 12 steps out."""
import logging

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from layers import TrafficNet
from losses import HealthCheck, masked_mae

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
log = logging.getLogger("traffic")


def load(split, mean=None, std=None):
    z = np.load(f"data/METR-LA/{split}.npz")
    x, y = z["x"][..., :1].astype(np.float32), z["y"][..., 0].astype(np.float32)
    if mean is None:
        mean, std = x[x != 0].mean(), x[x != 0].std()
    return TensorDataset(torch.from_numpy((x - mean) / std), torch.from_numpy(y)), mean, std


def main():
    torch.manual_seed(2)
    device = torch.device("cuda")
    adj = torch.from_numpy(np.load("data/METR-LA/adj.npy")).float()
    support = adj / adj.sum(1, keepdim=True).clamp(min=1e-6)

    train_set, mean, std = load("train")
    val_set, _, _ = load("val", mean, std)
    train = DataLoader(train_set, 64, shuffle=True, drop_last=True, pin_memory=True, num_workers=2)
    val = DataLoader(val_set, 128, pin_memory=True)

    model = TrafficNet(support).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-3)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [20, 30, 40], 0.1)
    check = HealthCheck(model, log)

    step, best = 0, float("inf")
    for epoch in range(50):
        model.train()
        total = torch.zeros((), device=device)
        for x, y in train:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            loss = masked_mae(model(x) * std + mean, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            check(step, loss.item())
            opt.step()
            total += loss.detach()
            step += 1
        sched.step()

        model.eval()
        err = torch.zeros((), device=device)
        with torch.no_grad():
            for x, y in val:
                err += masked_mae(model(x.to(device)) * std + mean, y.to(device))
        mae = (err / len(val)).item()
        log.info("epoch %d train %.4f val MAE %.4f", epoch, total.item() / len(train), mae)
        if mae < best:
            best = mae
            torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
