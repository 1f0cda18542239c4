from enum import Enum

import torch
from torch.nn import functional as F


class Stage(Enum):
    TRAIN = "train"
    VALID = "valid"


class Engine:
    def __init__(self, model, optimizer, loaders, l1=1e-4):
        self.model, self.optimizer, self.loaders, self.l1 = model, optimizer, loaders, l1
        self.log = []

    def sparsity(self):
        return self.l1 * sum(p.abs().sum() for n, p in self.model.named_parameters() if n.endswith("weight"))

    def run_stage(self, stage):
        loader = self.loaders[stage]
        self.model.train(stage == "train")
        loss_sum = hits = seen = 0
        for x, y in loader:
            with torch.set_grad_enabled(stage == Stage.TRAIN):
                logits = self.model(x)
                loss = F.cross_entropy(logits, y)
            if stage == "train":
                objective = loss + self.sparsity()
                self.optimizer.zero_grad()
                objective.backward()
                self.optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            seen += len(y)
        return {"loss": loss_sum / seen, "accuracy": hits / seen}

    def fit(self, epochs):
        for epoch in range(epochs):
            row = {s.value: self.run_stage(s.value) for s in Stage}
            self.log.append(row)
            print(epoch, " ".join(f"{k}: {v['loss']:.4f}/{v['accuracy']:.3f}" for k, v in row.items()))
