import torch


class PhaseRunner:
    """Runs one pass over a loader. The same code serves fitting and scoring."""

    def __init__(self, model, loss_fn, optimizer):
        self.model = model
        self.loss_fn = loss_fn
        self.optimizer = optimizer

    def run(self, phase, loader):
        training = phase == "train"
        self.model.train(training)
        total, n = 0.0, 0
        with torch.set_grad_enabled(training):
            for window, target in loader:
                pred = self.model(window)
                loss = self.loss_fn(pred, target)
                if loss.requires_grad:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                total += loss.item() * len(target)
                n += len(target)
        return total / n
