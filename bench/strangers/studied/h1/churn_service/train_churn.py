import json
import logging
from pathlib import Path

import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from data import make_loaders
from network import ChurnNet
from optim import build_optimizer

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("churn")


class TrainingJob:
    def __init__(self, settings):
        self.settings = settings
        torch.manual_seed(settings["seed"])
        self.train_loader, self.test_loader = make_loaders(settings["batch_size"], settings["seed"])
        self.model = ChurnNet(6, settings["hidden"], settings["dropout"])
        self.optimizer = build_optimizer(self.model, settings)
        self.criterion = nn.BCEWithLogitsLoss()

    def run(self):
        for epoch in range(self.settings["epochs"]):
            loss = self._train_epoch()
            log.info("epoch %d loss %.4f auc %.4f", epoch, loss, self._auc())

    def _train_epoch(self):
        self.model.train()
        total, count = 0.0, 0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(x)
            count += len(x)
        return total / count

    @torch.no_grad()
    def _auc(self):
        self.model.eval()
        scores, labels = [], []
        for x, y in self.test_loader:
            scores.append(torch.sigmoid(self.model(x)))
            labels.append(y)
        return roc_auc_score(torch.cat(labels).numpy(), torch.cat(scores).numpy())


if __name__ == "__main__":
    TrainingJob(json.loads(Path("settings.json").read_text())).run()
