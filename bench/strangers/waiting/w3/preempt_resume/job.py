"""Spot-instance job. `python job.py` simulates a preemption and checks that both halves equal one full run."""
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from state import TrainState

EPOCHS = 6


def data():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(512, 12, generator=g)
    y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2] - 0.5 * x[:, 2:3].abs()
    return TensorDataset(x[:400], y[:400]), TensorDataset(x[400:], y[400:])


def noise(x):
    # augmentation drawn from numpy and python on purpose: both are part of the saved state
    return x + random.uniform(0, 0.05) * torch.from_numpy(np.random.randn(*x.shape)).float()


def job(path, stop_after=None):
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    train, val = data()
    net = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Dropout(0.05), nn.Linear(64, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
    loader = DataLoader(train, 32, shuffle=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=EPOCHS * len(loader))
    ema = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    st = TrainState(net=net, opt=opt, sched=sched, ema=ema)
    if os.path.exists(path):
        st.load(path)
        print("resumed at epoch", st.counters["epoch"])
    c = st.counters
    vx, vy = val.tensors
    while c["epoch"] < EPOCHS:
        net.train()
        for x, y in loader:
            loss = nn.functional.mse_loss(net(noise(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            ema.update_parameters(net)
            c["step"] += 1
        c["epoch"] += 1
        ema.eval()
        with torch.no_grad():
            vl = nn.functional.mse_loss(ema(vx), vy).item()
        c["best"] = min(c["best"], vl)
        print(f"epoch {c['epoch']} step {c['step']} val {vl:.4f}")
        st.save(path)
        if stop_after == c["epoch"]:
            return vl
    return vl


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        full = job(os.path.join(d, "full.pt"))
        job(os.path.join(d, "split.pt"), stop_after=3)
        resumed = job(os.path.join(d, "split.pt"))
        print("difference", abs(full - resumed))
