"""Heavy tailed price regression, gradients are clipped because of the outliers."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import Engine
from handlers import attach_grad_clipping, attach_loss_average, attach_printer, attach_validation


def prices(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8)).astype(np.float32)
    y = 2 * x[:, 0] - x[:, 1] * x[:, 2] + 0.5 * x[:, 3] ** 2 + rng.standard_t(1.6, n)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))[:, None]


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    engine = Engine(model, optimizer, nn.MSELoss())
    attach_grad_clipping(engine, max_norm=1.0)
    attach_loss_average(engine)
    attach_validation(engine, *prices(600, 1))
    attach_printer(engine)
    engine.run(DataLoader(TensorDataset(*prices(2000, 0)), batch_size=40, shuffle=True), epochs=6)


if __name__ == "__main__":
    main()
