import torch
from torch import nn


class Runner:
    def __init__(self, model, cfg, device):
        self.model = model.to(device)
        self.cfg = cfg
        self.device = device
        self.use_amp = device.type == "cuda"
        self.criterion = nn.CrossEntropyLoss(label_smoothing=cfg["label_smoothing"])
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["weight_decay"])
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, cfg["lr"], total_steps=cfg["total_steps"])
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.use_amp)

    def _autocast(self):
        return torch.autocast(self.device.type, dtype=torch.float16, enabled=self.use_amp)

    def _limit_gradients(self):
        if self.cfg["max_norm"] is None:
            return
        params = [p for g in self.optimizer.param_groups for p in g["params"] if p.grad is not None]
        nn.utils.clip_grad_norm_(params, self.cfg["max_norm"])

    def _apply_gradients(self):
        self._limit_gradients()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.scheduler.step()

    def train_epoch(self, loader):
        self.model.train()
        total = torch.zeros((), device=self.device)
        for mel, label in loader:
            mel = mel.to(self.device, non_blocking=True)
            label = label.to(self.device, non_blocking=True)
            with self._autocast():
                loss = self.criterion(self.model(mel), label)
            self.scaler.scale(loss).backward()
            self._apply_gradients()
            total += loss.detach()
        return (total / len(loader)).item()

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        hits = torch.zeros((), device=self.device)
        for mel, label in loader:
            with self._autocast():
                out = self.model(mel.to(self.device))
            hits += (out.argmax(1) == label.to(self.device)).sum()
        return hits.item() / len(loader.dataset)
