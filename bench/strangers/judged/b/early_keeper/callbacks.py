import math


class Callback:
    def begin(self, learner): ...
    def after_epoch(self, learner, metrics): ...
    def end(self, learner): ...


class Printer(Callback):
    def after_epoch(self, learner, metrics):
        print(f"{learner.epoch:3d} " + " ".join(f"{k}={v:.4f}" for k, v in metrics.items()))


class KeepBest(Callback):
    """Stops when `monitor` no longer improves and puts the best weights back at the end."""

    def __init__(self, monitor="val_mse", patience=4):
        self.monitor, self.patience = monitor, patience

    def begin(self, learner):
        self.best, self.wait, self.weights = math.inf, 0, None

    def after_epoch(self, learner, metrics):
        value = metrics[self.monitor]
        if value < self.best:
            self.best, self.wait = value, 0
            self.weights = {name: t.detach() for name, t in learner.net.state_dict().items()}
        else:
            self.wait += 1
            learner.stop = self.wait >= self.patience

    def end(self, learner):
        if self.weights is not None:
            learner.net.load_state_dict(self.weights)
            print(f"restored weights with {self.monitor}={self.best:.4f}")
