import torch


class BaseTrainer:
    def __init__(self, model, lr, epochs):
        self.model, self.epochs = model, epochs
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.step = 0

    def compute_loss(self, batch):
        raise NotImplementedError

    def after_step(self):
        pass

    def evaluate(self):
        return {}

    def batches(self):
        raise NotImplementedError

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            for batch in self.batches():
                loss = self.compute_loss(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.step += 1
                self.after_step()
            self.model.eval()
            line = "  ".join(f"{k} {v:.3f}" for k, v in self.evaluate().items())
            print(f"epoch {epoch}  loss {loss.item():.3f}  {line}")
