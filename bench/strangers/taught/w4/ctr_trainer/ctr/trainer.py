import logging

import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score

from .metrics import MetricTracker

log = logging.getLogger(__name__)


class Trainer:
    def __init__(self, model, optimizer, train_loader, valid_loader, device="cpu", l2=1e-5):
        self.model = model.to(device)
        self.optimizer = optimizer
        self.train_loader, self.valid_loader = train_loader, valid_loader
        self.device = device
        self.l2 = l2
        self.tracker = MetricTracker()

    def _train_epoch(self):
        self.model.train()
        self.tracker.reset()
        for x, y in self.train_loader:
            x = x.to(self.device, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            logits = self.model(x)
            bce = F.binary_cross_entropy_with_logits(logits, y)
            reg = self.l2 * self.model.embed(x + self.model.offsets).pow(2).sum() / len(x)
            loss = bce + reg

            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.tracker.update(len(x), loss=loss, bce=bce)
        return self.tracker.compute()

    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        scores, labels = [], []
        for x, y in self.valid_loader:
            scores.append(torch.sigmoid(self.model(x.to(self.device))).cpu())
            labels.append(y)
        return {"auc": roc_auc_score(torch.cat(labels).numpy(), torch.cat(scores).numpy())}

    def fit(self, epochs):
        for epoch in range(1, epochs + 1):
            train = self._train_epoch()
            valid = self._validate()
            log.info("epoch %d | loss %.4f | bce %.4f | auc %.4f", epoch, train["loss"], train["bce"], valid["auc"])
