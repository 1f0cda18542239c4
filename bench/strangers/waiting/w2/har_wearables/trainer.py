import logging

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

log = logging.getLogger("har")


class Trainer:
    def __init__(self, model, train_set, val_set, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg.device)
        self.model = model.to(self.device)
        self.train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=256)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay
        )

    def fit(self):
        for epoch in range(1, self.cfg.epochs + 1):
            loss = self._train_epoch()
            acc = self.evaluate()
            log.info("epoch %02d  loss %.4f  val_acc %.3f", epoch, loss, acc)

    def _train_epoch(self):
        self.model.train()
        total, n = 0.0, 0
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad(set_to_none=True)
            out = self.model(x)
            loss = self.criterion(out, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
            n += len(y)
        return total / n

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits, n = 0, 0
        for x, y in self.val_loader:
            scores = self.model(x.to(self.device)).cpu()
            hits += (scores.argmax(-1) == y).sum().item()
            n += len(y)
        return hits / n
