#!/usr/bin/env python
"""Contrastive embedding of handwritten digits from two noisy views."""

import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

BATCH_SIZE = 128
TEMPERATURE = 0.2
EPOCHS = 15

torch.manual_seed(int(os.environ.get("SEED", "0")))
start = time.time()

digits = load_digits()
x_all = torch.tensor(digits.data, dtype=torch.float32)
x_all = (x_all - x_all.mean()) / x_all.std()
perm = torch.randperm(len(x_all))
train_idx, test_idx = perm[:1400], perm[1400:]


def augment(x):
    noisy = x + 0.25 * torch.randn_like(x)
    return noisy * (torch.rand_like(x) > 0.1)


encoder = nn.Sequential(
    nn.Linear(64, 128),
    nn.BatchNorm1d(128),
    nn.ReLU(),
    nn.Linear(128, 64),
)
projector = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
params = list(encoder.parameters()) + list(projector.parameters())
optimizer = torch.optim.AdamW(params, lr=3e-3, weight_decay=1e-4)


def retrieval_accuracy():
    """Share of held-out images whose other view is the nearest of all."""
    encoder.eval()
    with torch.no_grad():
        x = x_all[test_idx]
        query = F.normalize(projector(encoder(augment(x))), dim=1)
        bank = F.normalize(projector(encoder(augment(x))), dim=1)
        nearest = (query @ bank.T).argmax(dim=1)
    encoder.train()
    return (nearest == torch.arange(len(x))).float().mean().item()


for epoch in range(EPOCHS):
    shuffled = train_idx[torch.randperm(len(train_idx))]
    losses = []
    for i in range(0, len(shuffled) - BATCH_SIZE + 1, BATCH_SIZE):
        x = x_all[shuffled[i : i + BATCH_SIZE]]
        z1 = F.normalize(projector(encoder(augment(x))), dim=1)
        z2 = F.normalize(projector(encoder(augment(x))), dim=1)
        logits = z1 @ z2.T / TEMPERATURE
        targets = torch.arange(len(x))
        loss = 0.5 * (F.cross_entropy(logits, targets) + F.cross_entropy(logits.T, targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 2 or epoch == 0:
        acc = retrieval_accuracy()
        print(
            "epoch", epoch, "loss", round(sum(losses) / len(losses), 4), "retrieval", round(acc, 4)
        )
    else:
        print("epoch", epoch, "loss", round(sum(losses) / len(losses), 4))
