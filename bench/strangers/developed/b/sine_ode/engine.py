"""A minimal Lightning-like engine: subclass `Task`, hand it to `Engine`."""
import pathlib

import torch


class Task(torch.nn.Module):
    def loss(self, batch):
        raise NotImplementedError

    def configure_optimizer(self):
        raise NotImplementedError


class Engine:
    def __init__(self, task, workdir, max_epochs, log=print):
        self.task = task
        self.workdir = pathlib.Path(workdir)
        self.workdir.mkdir(parents=True, exist_ok=True)
        self.max_epochs, self.log = max_epochs, log
        self.optimizer = task.configure_optimizer()
        self.epoch = 0

    @property
    def last(self):
        return self.workdir / "last.ckpt"

    def save(self):
        torch.save(
            {
                "task": self.task.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "epoch": self.epoch,
                "rng": torch.get_rng_state(),
            },
            self.last,
        )

    def resume(self):
        if self.last.exists():
            ck = torch.load(self.last, weights_only=True)
            self.task.load_state_dict(ck["task"])
            self.optimizer.load_state_dict(ck["optimizer"])
            self.epoch = ck["epoch"]
            torch.set_rng_state(ck["rng"])
            self.log(f"resumed at epoch {self.epoch}")
        return self

    def setup(self):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.task.to(device)
        # parameters may have been moved, so the optimizer has to be created after .to()
        self.optimizer = self.task.configure_optimizer()
        return device

    def fit(self, train_loader, val_loader):
        device = self.setup()
        for self.epoch in range(self.epoch, self.max_epochs):
            self.task.train()
            for batch in train_loader:
                batch = [t.to(device) for t in batch]
                self.optimizer.zero_grad(set_to_none=True)
                self.task.loss(batch).backward()
                self.optimizer.step()
            self.task.eval()
            with torch.no_grad():
                vals = [self.task.loss([t.to(device) for t in b]).item() for b in val_loader]
            self.log(f"epoch {self.epoch}: val {sum(vals) / len(vals):.5f}")
            self.epoch += 1
            self.save()
