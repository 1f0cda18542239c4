class Callback:
    def on_validation_end(self, loop, metrics):
        pass

    def on_fit_end(self, loop):
        pass


class EarlyStopping(Callback):
    """Stops after `patience` validations without improvement and puts the best weights back at the end."""

    def __init__(self, monitor="val_mae", patience=6, min_delta=1e-4):
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self.best, self.best_epoch, self.bad = float("inf"), None, 0
        self.weights = None

    def on_validation_end(self, loop, metrics):
        current = metrics[self.monitor]
        if current < self.best - self.min_delta:
            self.best, self.best_epoch, self.bad = current, loop.epoch, 0
            self.weights = {k: v.detach() for k, v in loop.net.state_dict().items()}
        else:
            self.bad += 1
            loop.stop = self.bad >= self.patience

    def on_fit_end(self, loop):
        if self.weights is not None:
            loop.net.load_state_dict(self.weights)
            print(f"restored weights of epoch {self.best_epoch} ({self.monitor} {self.best:.4f})")


class ConsoleLogger(Callback):
    def __init__(self, every=5):
        self.every = every

    def on_validation_end(self, loop, metrics):
        if loop.epoch % self.every == 0:
            print(f"epoch {loop.epoch:3d} " + " ".join(f"{k} {v:.4f}" for k, v in metrics.items()))
