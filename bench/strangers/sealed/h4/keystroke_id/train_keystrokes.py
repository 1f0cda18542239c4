"""Identify the typist from digraph timings."""
import contextlib
import math

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(3)
RNG = np.random.default_rng(3)
N_USERS, N_DIGRAPHS = 8, 60


def simulate(sessions_per_user, habits):
    xs, ys = [], []
    for user in range(N_USERS):
        t = habits[user] + RNG.normal(0, 1.6, size=(sessions_per_user, N_DIGRAPHS))
        xs.append(t)
        ys.append(np.full(sessions_per_user, user))
    x = torch.tensor(np.concatenate(xs), dtype=torch.float32)
    return x, torch.tensor(np.concatenate(ys))


class TypistNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(N_DIGRAPHS, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.5))
        self.block2 = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5))
        self.classifier = nn.Linear(128, N_USERS)

    def forward(self, x):
        return self.classifier(self.block2(self.block1(x)))


@contextlib.contextmanager
def inference(net):
    """Switch to inference behaviour for the duration of a block, then put things back."""
    net.eval()
    previous = net.training
    with torch.no_grad():
        yield net
    net.train(previous)


def accuracy(net, x, y):
    with inference(net) as n:
        return (n(x).argmax(1) == y).float().mean().item()


def cosine(step, total, base):
    return 0.5 * base * (1 + math.cos(math.pi * step / total))


def fit(net, train, valid, epochs=20, batch=40, base_lr=2e-3):
    x, y = train
    opt = torch.optim.Adam(net.parameters(), lr=base_lr)
    ce = nn.CrossEntropyLoss()
    total = epochs * math.ceil(len(x) / batch)
    step = 0
    history = {"loss": [], "train_acc": [], "valid_acc": []}
    net.train()
    print(f"before training: {accuracy(net, *valid):.3f}")
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        running = 0.0
        for chunk in order.split(batch):
            for group in opt.param_groups:
                group["lr"] = cosine(step, total, base_lr)
            opt.zero_grad()
            loss = ce(net(x[chunk]), y[chunk])
            loss.backward()
            opt.step()
            running += loss.item() * len(chunk)
            step += 1
        history["loss"].append(running / len(x))
        history["train_acc"].append(accuracy(net, x, y))
        history["valid_acc"].append(accuracy(net, *valid))
        print(f"{epoch:2d} loss={history['loss'][-1]:.4f} "
              f"train={history['train_acc'][-1]:.3f} valid={history['valid_acc'][-1]:.3f}")
    return history


if __name__ == "__main__":
    habits = RNG.normal(0, 0.55, size=(N_USERS, N_DIGRAPHS))
    train = simulate(40, habits)
    valid = simulate(40, habits)
    net = TypistNet()
    hist = fit(net, train, valid)
    print("best validation accuracy", max(hist["valid_acc"]))
