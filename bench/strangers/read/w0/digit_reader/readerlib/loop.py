from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader


def fit(model: nn.Module, loader: DataLoader, epochs: int, lr: float, on_epoch=None) -> nn.Module:
    optimiser = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=lr, total_steps=epochs * len(loader))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            optimiser.zero_grad()
            criterion(model(images), labels).backward()
            optimiser.step()
            schedule.step()
        if on_epoch is not None:
            on_epoch(epoch, model)
    return model


@torch.no_grad()
def score(model: nn.Module, loader: DataLoader) -> float:
    was_training = model.training
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train(was_training)
    return right / len(loader.dataset)
