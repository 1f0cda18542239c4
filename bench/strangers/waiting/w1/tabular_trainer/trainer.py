from dataclasses import dataclass
from typing import Callable, Optional

import torch
from torch import nn


@dataclass
class TrainerArgs:
    epochs: int = 12
    lr: float = 2e-3
    weight_decay: float = 1e-4
    max_grad_norm: Optional[float] = 1.0
    amp: bool = torch.cuda.is_available()
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self, model: nn.Module, loss_fn: Callable, args: TrainerArgs):
        self.args = args
        self.device = torch.device(args.device)
        self.model = model.to(self.device)
        self.loss_fn = loss_fn
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=args.lr, weight_decay=args.weight_decay
        )
        self.scaler = torch.amp.GradScaler("cuda") if args.amp else None
        self.history = []

    def _forward(self, batch):
        x, y = (t.to(self.device) for t in batch)
        if self.scaler is not None:
            with torch.autocast("cuda", dtype=torch.float16):
                return self.loss_fn(self.model(x), y)
        return self.loss_fn(self.model(x), y)

    def _update(self, loss):
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
        if self.args.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def fit(self, train_loader, valid_loader):
        for epoch in range(self.args.epochs):
            self.model.train()
            running = 0.0
            for batch in train_loader:
                loss = self._forward(batch)
                self._update(loss)
                running += loss.item()
            metrics = self.evaluate(valid_loader)
            metrics.update(epoch=epoch, train_loss=running / len(train_loader))
            self.history.append(metrics)
            print(" ".join(f"{k}={v:.4f}" if isinstance(v, float) else f"{k}={v}" for k, v in metrics.items()))
        return self.history

    @torch.inference_mode()
    def evaluate(self, loader):
        self.model.eval()
        loss, hits, n = 0.0, 0, 0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            out = self.model(x)
            loss += self.loss_fn(out, y).item() * len(y)
            hits += (out.argmax(-1) == y).sum().item()
            n += len(y)
        return {"valid_loss": loss / n, "valid_acc": hits / n}
