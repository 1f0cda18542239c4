import torch


class BaseTrainer:
    """Minimal loop. Subclasses implement `compute_loss` and may override the hooks."""

    def __init__(self, model, optimizer, peak_lr, warmup=30):
        self.model = model
        self.optimizer = optimizer
        self.peak_lr = peak_lr
        self.warmup = warmup
        self.iteration = 0

    def compute_loss(self, batch):
        raise NotImplementedError

    def current_lr(self):
        return self.peak_lr * min(1.0, self.iteration / self.warmup)

    def before_batch(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.current_lr()

    def after_batch(self, loss):
        self.iteration += 1

    def after_epoch(self, epoch):
        pass

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            for batch in loader:
                self.before_batch()
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.compute_loss(batch)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                self.after_batch(loss)
            self.after_epoch(epoch)
