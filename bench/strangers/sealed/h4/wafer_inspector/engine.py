import logging

import torch
from torch import nn

log = logging.getLogger("engine")


class WaferCNN(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(32 * 16, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, maps):
        return self.head(self.features(maps))


class Engine:
    def __init__(self, model, hub, lr=1e-3):
        self.model = model
        self.hub = hub
        self.optim = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit_epoch(self):
        self.model.train()
        losses = []
        for maps, kind in self.hub.loader("train"):
            self.optim.zero_grad()
            loss = self.criterion(self.model(maps), kind)
            loss.backward()
            self.optim.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def assess(self):
        self.model.eval()
        good = seen = 0
        for maps, kind in self.hub.loader("holdout"):
            good += (self.model(maps).argmax(-1) == kind).sum().item()
            seen += len(kind)
        return good / seen

    def run(self, epochs):
        for epoch in range(1, epochs + 1):
            loss = self.fit_epoch()
            log.info("epoch %d | loss %.4f | holdout accuracy %.3f", epoch, loss, self.assess())
