import os

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


class Engine:
    def __init__(self, model, cfg):
        self.model = model
        self.cfg = cfg
        self.epoch = 0
        self.optimizer = self.make_optimizer()

    def make_optimizer(self):
        params = [p for p in self.model.parameters() if p.requires_grad]
        return torch.optim.AdamW(params, lr=self.cfg["lr"], weight_decay=self.cfg["weight_decay"])

    def select_modules(self, names):
        """Train only the named children of the model."""
        for name, child in self.model.named_children():
            child.requires_grad_(name in names)
        self.optimizer = self.make_optimizer()

    def save(self):
        os.makedirs(os.path.dirname(self.cfg["ckpt"]), exist_ok=True)
        torch.save(
            {
                "epoch": self.epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            },
            self.cfg["ckpt"],
        )

    def restore(self):
        state = torch.load(self.cfg["ckpt"], map_location="cpu")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]

    def fit(self, train_set, valid_set):
        cfg = self.cfg
        self.select_modules(cfg["trainable"])
        stop = min(cfg["epochs"], self.epoch + cfg["epochs_per_job"])
        while self.epoch < stop:
            order = torch.Generator().manual_seed(cfg["seed"] + self.epoch)
            loader = DataLoader(train_set, batch_size=cfg["batch"], shuffle=True, generator=order)
            self.model.train()
            total = 0.0
            for x, y in loader:
                loss = F.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(x)
            self.epoch += 1
            self.save()
            print(f"epoch {self.epoch:2d}  train {total / len(train_set):.4f}  valid acc {self.evaluate(valid_set):.3f}")

    @torch.no_grad()
    def evaluate(self, dataset):
        self.model.eval()
        x, y = dataset.tensors
        return (self.model(x).argmax(-1) == y).float().mean().item()
