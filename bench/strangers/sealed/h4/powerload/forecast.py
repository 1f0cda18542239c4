import logging
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from features import assemble, hourly_load

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)


@dataclass
class Plan:
    hours: int = 2400
    fit_until: int = 1900
    lags: int = 4
    hidden: int = 48
    lr: float = 1e-3
    epochs: int = 10
    batch: int = 64


class LoadForecaster:
    def __init__(self, plan, n_inputs):
        self.plan = plan
        self.net = nn.Sequential(nn.Linear(n_inputs, plan.hidden), nn.Tanh(),
                                 nn.Linear(plan.hidden, plan.hidden), nn.Tanh(), nn.Linear(plan.hidden, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=plan.lr)
        self.loss = nn.MSELoss()

    def fit(self, data, check):
        loader = DataLoader(data, batch_size=self.plan.batch, shuffle=True)
        for epoch in range(self.plan.epochs):
            self.net.train()
            acc = 0.0
            for x, y in loader:
                self.opt.zero_grad()
                loss = self.loss(self.net(x).squeeze(1), y)
                loss.backward()
                self.opt.step()
                acc += loss.item() * len(y)
            log.info("epoch %2d  fit mse %.4f  check mse %.4f", epoch, acc / len(data), self.check(check))

    @torch.no_grad()
    def check(self, data):
        self.net.eval()
        x, y = data.tensors
        return self.loss(self.net(x).squeeze(1), y).item()


def main():
    torch.manual_seed(0)
    plan = Plan()
    x, y, fit_rows = assemble(*hourly_load(plan.hours), lags=plan.lags, fit_until=plan.fit_until)
    pick = torch.from_numpy(fit_rows)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    forecaster = LoadForecaster(plan, x.shape[1])
    forecaster.fit(TensorDataset(x[pick], y[pick]), TensorDataset(x[~pick], y[~pick]))


if __name__ == "__main__":
    main()
