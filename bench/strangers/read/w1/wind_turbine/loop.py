"""A small callback based loop."""
import torch


class Callback:
    def on_fit_begin(self, loop): ...
    def on_batch_end(self, loop): ...
    def on_epoch_end(self, loop): ...


class Printer(Callback):
    def on_epoch_end(self, loop):
        lr = loop.optimizer.param_groups[0]["lr"]
        print(f"{loop.epoch:3d}  train {loop.train_loss:.4f}  val {loop.val_loss:.4f}  lr {lr:.2e}")


class Scheduling(Callback):
    """Advances a learning rate scheduler."""

    def __init__(self, factory):
        self.factory = factory

    def on_fit_begin(self, loop):
        self.scheduler = self.factory(loop.optimizer, loop)

    def on_epoch_end(self, loop):
        self.scheduler.step()


class KeepBest(Callback):
    def __init__(self):
        self.value, self.state = float("inf"), None

    def on_epoch_end(self, loop):
        if loop.val_loss < self.value:
            self.value = loop.val_loss
            self.state = {k: v.clone() for k, v in loop.model.state_dict().items()}


class Loop:
    def __init__(self, model, optimizer, loss_fn, callbacks=()):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.callbacks = list(callbacks)

    def emit(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, train, val, epochs):
        self.epochs, self.batches_per_epoch = epochs, len(train)
        self.emit("on_fit_begin")
        for self.epoch in range(epochs):
            self.model.train()
            total = n = 0
            for x, y in train:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(x)
                n += len(x)
                self.emit("on_batch_end")
            self.train_loss = total / n
            self.val_loss = self.evaluate(val)
            self.emit("on_epoch_end")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total = n = 0
        for x, y in loader:
            total += self.loss_fn(self.model(x), y).item() * len(x)
            n += len(x)
        return total / n
