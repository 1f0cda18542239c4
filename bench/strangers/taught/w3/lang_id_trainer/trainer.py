import json
import logging
import os

import torch

log = logging.getLogger(__name__)


class Trainer:
    """Generic classification trainer shared by the text services."""

    def __init__(self, model, optimizer, criterion, out_dir, name="model"):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion
        self.out_dir, self.name = out_dir, name
        self.best_acc, self.epoch = 0.0, 0
        os.makedirs(out_dir, exist_ok=True)

    @property
    def ckpt_path(self):
        return os.path.join(self.out_dir, f"{self.name}.pt")

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "epoch": self.epoch, "best_acc": self.best_acc}, self.ckpt_path)

    def load_weights(self):
        state = torch.load(self.ckpt_path, map_location="cpu")
        self.model.load_state_dict(state["model"])
        return state["epoch"]

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        hit = n = 0
        for x, y in loader:
            hit += (self.model(x).argmax(-1) == y).sum().item()
            n += y.numel()
        return hit / n

    def fit(self, train, val, epochs):
        history = []
        for self.epoch in range(1, epochs + 1):
            loss, acc = self.train_epoch(train), self.accuracy(val)
            history.append({"epoch": self.epoch, "loss": loss, "acc": acc})
            log.info("epoch %d loss %.4f val acc %.4f", self.epoch, loss, acc)
            if acc > self.best_acc:
                self.best_acc = acc
                log.info("new best, saving")
                self.save()
            # machines get preempted, so keep the current state as well
            self.save()
        with open(os.path.join(self.out_dir, "history.json"), "w") as f:
            json.dump(history, f)
        self.load_weights()
        return self.best_acc
