import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer, scheduler, epochs):
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.epochs = epochs
        self.criterion = nn.BCEWithLogitsLoss()
        self.history = []

    def _train_epoch(self, loader):
        self.model.train()
        losses = []
        for features, churned in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(features).squeeze(1), churned)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def _validate(self, loader):
        self.model.eval()
        total, right, n = 0.0, 0, 0
        for features, churned in loader:
            logit = self.model(features).squeeze(1)
            total += self.criterion(logit, churned).item() * len(churned)
            right += ((logit > 0) == churned.bool()).sum().item()
            n += len(churned)
        return total / n, right / n

    def fit(self, train_loader, val_loader):
        for epoch in range(1, self.epochs + 1):
            train_loss = self._train_epoch(train_loader)
            val_loss, val_acc = self._validate(val_loader)
            self.scheduler.step()
            lr = self.optimizer.param_groups[0]["lr"]
            self.history.append((train_loss, val_loss, val_acc))
            print(f"{epoch:>3} | {train_loss:.4f} | {val_loss:.4f} | {val_acc:.3f} | lr {lr:.1e}")
        return self.history
