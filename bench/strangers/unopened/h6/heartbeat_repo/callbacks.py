import torch


class Callback:
    def on_epoch_end(self, trainer):
        ...


class LossPrinter(Callback):
    def on_epoch_end(self, trainer):
        print(f"[rank {trainer.rank}] epoch {trainer.epoch} train {trainer.train_loss:.4f}", flush=True)


class KeepBest(Callback):
    def __init__(self, path):
        self.path, self.best = path, float("-inf")

    def on_epoch_end(self, trainer):
        score = trainer.evaluate()
        print(f"           val balanced acc {score:.4f}", flush=True)
        if score > self.best:
            self.best = score
            torch.save(trainer.net.module.state_dict(), self.path)
