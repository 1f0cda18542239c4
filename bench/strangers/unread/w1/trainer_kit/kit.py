from pathlib import Path

import torch
from torch import nn


class Stateful:
    """Collects everything assigned to it that has to survive a restart."""

    def snapshot(self):
        out = {}
        for name, value in vars(self).items():
            if isinstance(value, (nn.Module, torch.optim.Optimizer)):
                out[name] = value.state_dict()
        out["step"] = self.step
        out["torch_rng"] = torch.get_rng_state()
        return out

    def restore(self, blob):
        blob = dict(blob)
        self.step = blob.pop("step")
        torch.set_rng_state(blob.pop("torch_rng"))
        for name, state in blob.items():
            getattr(self, name).load_state_dict(state)


class Trainer(Stateful):
    def __init__(self, model, data, total_steps, lr, folder, batch=64, save_every=50):
        self.model = model
        self.data = data
        self.total_steps = total_steps
        self.batch = batch
        self.save_every = save_every
        self.step = 0
        self.path = Path(folder) / "last.pt"
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=lr, total_steps=total_steps)

    def resume_if_possible(self):
        if self.path.exists():
            self.restore(torch.load(self.path, map_location="cpu", weights_only=True))
            print(f"resumed at step {self.step}")
        return self

    def save(self):
        tmp = self.path.with_suffix(".tmp")
        torch.save(self.snapshot(), tmp)
        tmp.replace(self.path)

    def run(self, until=None):
        x, y = self.data["train"]
        stop = min(until or self.total_steps, self.total_steps)
        while self.step < stop:
            self.model.train()
            pick = torch.randint(len(x), (self.batch,))
            loss = self.criterion(self.model(x[pick]), y[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.step += 1
            if self.step % self.save_every == 0:
                self.save()
                print(f"{self.step:4d} loss {loss.item():.3f} lr {self.optimizer.param_groups[0]['lr']:.5f} "
                      f"acc {self.validate():.3f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.data["val"]
        return (self.model(x).argmax(1) == y).float().mean().item()
