import logging

import numpy as np
import torch
from torch import nn

log = logging.getLogger("training")


def to_matrix(records):
    columns = sorted(k for k in records[0] if k != "failed")
    return np.array([[rec[c] for c in columns] for rec in records], dtype=np.float32)


def build(n_in, hidden):
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                         nn.Linear(hidden, 1))


def train(records, params):
    x = to_matrix(records)
    y = torch.tensor([rec["failed"] for rec in records], dtype=torch.float32)
    mean, std = x.mean(0), x.std(0)
    x = torch.from_numpy((x - mean) / std)
    net = build(x.shape[1], params["hidden"])
    optim = torch.optim.Adam(net.parameters(), lr=params["lr"])
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(params["epochs"]):
        epoch_loss = 0.0
        for idx in torch.randperm(len(x)).split(64):
            optim.zero_grad()
            loss = loss_fn(net(x[idx]).squeeze(1), y[idx])
            loss.backward()
            optim.step()
            epoch_loss += loss.item() * len(idx)
        log.info("epoch %d loss %.4f", epoch, epoch_loss / len(x))
    torch.save({"state": net.state_dict(), "mean": torch.from_numpy(mean), "std": torch.from_numpy(std)},
               params["artifact"])
