import torch
from torch import nn


class Trainer:
    def __init__(self, net, optimizer, loss="cross_entropy", threshold=0.5):
        self.net = net
        self.optimizer = optimizer
        self.criterion = self.make_criterion(loss)
        self.threshold = threshold

    @staticmethod
    def make_criterion(name):
        if name == "cross_entropy":
            return nn.CrossEntropyLoss()
        if name == "mse":
            return nn.MSELoss()
        raise ValueError(f"unknown loss {name!r}")

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            self.net.train()
            losses = [self._batch(b) for b in train_loader]
            scores = self.evaluate(val_loader)
            print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} "
                  + " ".join(f"{k} {v:.3f}" for k, v in scores.items()))

    def _batch(self, batch):
        self.optimizer.zero_grad()
        loss = self.criterion(self.net(batch["tokens"]), batch["tags"])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self, loader):
        self.net.eval()
        tp = fp = fn = 0
        for batch in loader:
            on = torch.sigmoid(self.net(batch["tokens"])) > self.threshold
            want = batch["tags"].bool()
            tp += (on & want).sum().item()
            fp += (on & ~want).sum().item()
            fn += (~on & want).sum().item()
        precision, recall = tp / max(tp + fp, 1), tp / max(tp + fn, 1)
        return {"P": precision, "R": recall, "F1": 2 * tp / max(2 * tp + fp + fn, 1)}
