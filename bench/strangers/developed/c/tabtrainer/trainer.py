import torch

from metrics import MetricBook


class Trainer:
    def __init__(self, model, objective, optimizer, scheduler=None, device="cpu", clip=None):
        self.model = model.to(device)
        self.objective = objective
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.device = device
        self.clip = clip
        self.history = MetricBook()      # whole-run averages
        self.seen = 0

    def _forward(self, batch):
        x, y = (t.to(self.device, non_blocking=True) for t in batch)
        pred = self.model(x)
        return {"loss": self.objective(pred, y), "mae": (pred.detach() - y).abs().mean(), "n": len(x)}

    def _train_epoch(self, loader):
        self.model.train()
        book = MetricBook()
        for batch in loader:
            out = self._forward(batch)
            self.optimizer.zero_grad(set_to_none=True)
            out["loss"].backward()
            if self.clip:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()
            for name in ("loss", "mae"):
                book[f"train/{name}"].update(out[name], out["n"])
                self.history[f"train/{name}"].update(out[name], out["n"])
            self.seen += out["n"]
        return book

    @torch.no_grad()
    def _eval_epoch(self, loader):
        self.model.eval()
        book = MetricBook()
        for batch in loader:
            out = self._forward(batch)
            for name in ("loss", "mae"):
                book[f"val/{name}"].update(out[name], out["n"])
        return book

    def fit(self, train_loader, val_loader, epochs):
        for e in range(1, epochs + 1):
            tr = self._train_epoch(train_loader)
            va = self._eval_epoch(val_loader)
            print(f"epoch {e}: {tr.line()} | {va.line()}")
        print(f"{self.seen} samples; run average: {self.history.line()}")
