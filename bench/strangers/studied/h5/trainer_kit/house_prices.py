import torch
from sklearn.datasets import make_regression
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from lookahead import LookaheadTrainer


class PriceTrainer(LookaheadTrainer):
    def compute_loss(self, batch):
        x, y = batch
        return nn.functional.huber_loss(self.model(x).squeeze(1).float(), y)

    @torch.no_grad()
    def r2(self, x, y):
        self.model.eval()
        pred = self.model(x.to(self.device)).squeeze(1).cpu()
        return (1 - (pred - y).pow(2).mean() / y.var()).item()


def houses():
    x, y = make_regression(1500, 15, n_informative=10, noise=10.0, random_state=0)
    x = StandardScaler().fit_transform(x)
    y = (y - y.mean()) / y.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = houses()
    loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 1))
    trainer = PriceTrainer(model, torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9))
    for epoch in range(6):
        loss = trainer.run_epoch(loader)
        print(f"epoch {epoch}  loss {loss:.4f}  held-out R2 {trainer.r2(x[1200:], y[1200:]):.3f}")
