import torch

from .meters import Board


class BaseTrainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model, optimizer, criterion

    def step(self, batch):
        raise NotImplementedError

    def evaluate_batch(self, batch, board):
        raise NotImplementedError

    def fit(self, train_loader, valid_loader, epochs):
        valid_board = Board("valid_loss", "valid_acc")
        for epoch in range(1, epochs + 1):
            self.model.train()
            last = 0.0
            for batch in train_loader:
                self.optimizer.zero_grad()
                loss = self.step(batch)
                loss.backward()
                self.optimizer.step()
                last = loss.item()
            self.model.eval()
            valid_board.clear()
            with torch.no_grad():
                for batch in valid_loader:
                    self.evaluate_batch(batch, valid_board)
            print(f"epoch {epoch}  last train loss {last:.4f}  {valid_board.line()}")


class ClassifierTrainer(BaseTrainer):
    def step(self, batch):
        x, y = batch
        return self.criterion(self.model(x), y)

    def evaluate_batch(self, batch, board):
        x, y = batch
        out = self.model(x)
        board["valid_loss"].add(self.criterion(out, y), len(y))
        board["valid_acc"].add((out.argmax(1) == y).float().mean(), len(y))
