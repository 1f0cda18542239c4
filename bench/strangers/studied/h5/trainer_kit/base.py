import torch


class BaseTrainer:
    """Subclasses give compute_loss() and may override single steps of the loop."""

    def __init__(self, model, optimizer, device=None):
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler(self.device, init_scale=2.0 ** 12)
        self.dtype = torch.float16 if self.device == "cuda" else torch.bfloat16
        self.global_step = 0

    def compute_loss(self, batch):
        raise NotImplementedError

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def optimizer_step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def run_epoch(self, loader):
        self.model.train()
        total = 0.0
        for batch in loader:
            batch = [t.to(self.device) for t in batch]
            self.optimizer.zero_grad()
            with torch.autocast(self.device, dtype=self.dtype):
                loss = self.compute_loss(batch)
            self.backward(loss)
            self.optimizer_step()
            self.global_step += 1
            total += loss.item()
        return total / len(loader)
