import torch

from metrics import Board


class Engine:
    def __init__(self, model, criterion, optimizer, scheduler=None, log_every=25, device="cpu"):
        self.model = model.to(device)
        self.criterion = criterion
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.log_every = log_every
        self.device = device
        self.board = Board()
        self.step = 0

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for tokens, lengths, target in loader:
                self._train_step(tokens.to(self.device), lengths, target.to(self.device))

    def _train_step(self, tokens, lengths, target):
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.model(tokens, lengths)
        loss = self.criterion(logits, target)
        loss.backward()
        grad_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        self.step += 1

        acc = ((logits.detach() > 0) == target.bool()).float().mean()
        self.board.log(len(target), loss=loss, acc=acc.item(), gnorm=grad_norm.item())
        if self.step % self.log_every == 0:
            print(f"[{self.step}] {self.board.line()}")

    @torch.no_grad()
    def test(self, loader):
        self.model.eval()
        hits = count = 0
        for tokens, lengths, target in loader:
            pred = self.model(tokens.to(self.device), lengths) > 0
            hits += (pred.cpu() == target.bool()).sum().item()
            count += len(target)
        return hits / count
