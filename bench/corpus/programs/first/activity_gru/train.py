"""Classifies windows of a three-axis accelerometer into four activities with a GRU."""

import logging
import os
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
import yaml
from torch.utils.data import DataLoader, Dataset, random_split

logging.basicConfig(
    level=logging.INFO,
    format="%(asctime)s [%(levelname)s] %(name)s: %(message)s",
    datefmt="%Y-%m-%d %H:%M:%S",
)
log = logging.getLogger("activity")

ACTIVITIES = ["rest", "walk", "run", "stairs"]


class AccelerometerWindows(Dataset):
    """Synthetic windows: each activity has its own cadence and bounce."""

    def __init__(self, num_sequences, seq_len, noise, rng):
        cadence = np.array([0.0, 0.9, 1.8, 0.9])
        bounce = np.array([0.05, 0.8, 1.4, 0.8])
        self.labels = rng.integers(0, len(ACTIVITIES), size=num_sequences)
        t = np.arange(seq_len)[None, :]
        phase = rng.uniform(0, 2 * np.pi, size=(num_sequences, 1))
        speed = cadence[self.labels][:, None] * rng.uniform(0.85, 1.15, size=(num_sequences, 1))
        wave = bounce[self.labels][:, None] * np.sin(0.5 * speed * t + phase)
        climb = np.where(self.labels == 3, 1.0, 0.0)[:, None] * t / seq_len
        xyz = np.stack([wave, 0.5 * np.roll(wave, 2, axis=1), climb + 0.3 * wave], axis=-1)
        xyz = xyz + noise * rng.standard_normal(xyz.shape)
        self.windows = torch.tensor(xyz, dtype=torch.float32)
        self.labels = torch.tensor(self.labels, dtype=torch.long)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.windows[i], self.labels[i]


class GRUClassifier(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, num_classes, dropout):
        super().__init__()
        self.rnn = nn.GRU(input_size, hidden_size, num_layers, batch_first=True)
        self.norm = nn.LayerNorm(hidden_size)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        out, _ = self.rnn(x)
        last = self.norm(out[:, -1])
        return self.fc(self.drop(last))


def run_epoch(model, loader, criterion, optimizer=None, clip=None):
    training = optimizer is not None
    model.train(training)
    losses, hits, count = [], 0, 0
    with torch.set_grad_enabled(training):
        for windows, labels in loader:
            scores = model(windows)
            loss = criterion(scores, labels)
            if training:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
            losses.append(loss.item())
            hits += (scores.argmax(dim=-1) == labels).sum().item()
            count += labels.numel()
    return float(np.mean(losses)), hits / count


if __name__ == "__main__":
    seed = int(os.getenv("SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

    cfg = yaml.safe_load((Path(__file__).parent / "config.yaml").read_text())
    data_cfg, optim_cfg = cfg["data"], cfg["optim"]

    dataset = AccelerometerWindows(
        data_cfg["num_sequences"],
        data_cfg["seq_len"],
        data_cfg["noise"],
        np.random.default_rng(seed),
    )
    n_val = int(len(dataset) * data_cfg["val_split"])
    train_set, val_set = random_split(dataset, [len(dataset) - n_val, n_val])
    train_loader = DataLoader(train_set, batch_size=optim_cfg["batch_size"], shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)
    log.info("train windows: %d, val windows: %d", len(train_set), len(val_set))

    model = GRUClassifier(input_size=3, num_classes=len(ACTIVITIES), **cfg["model"])
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=optim_cfg["lr"])
    scheduler = optim.lr_scheduler.StepLR(
        optimizer, step_size=optim_cfg["step_size"], gamma=optim_cfg["gamma"]
    )

    for epoch in range(optim_cfg["epochs"]):
        train_loss, train_acc = run_epoch(
            model, train_loader, criterion, optimizer, optim_cfg["clip"]
        )
        val_loss, val_acc = run_epoch(model, val_loader, criterion)
        log.info(
            "epoch %d | lr %.2e | train loss %.4f acc %.3f | val loss %.4f acc %.3f",
            epoch,
            scheduler.get_last_lr()[0],
            train_loss,
            train_acc,
            val_loss,
            val_acc,
        )
        scheduler.step()
    log.info("done")
