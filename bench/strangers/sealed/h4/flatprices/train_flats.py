import numpy as np
import torch
from torch import nn

from flats import listings
from options import load_options


class PriceTransform:
    """Maps prices to what the network predicts and back."""

    def __init__(self, log_target, prices):
        self.log_target = log_target
        if log_target:
            self.centre, self.spread = np.log(prices).mean(), np.log(prices).std()

    def encode(self, prices):
        return (np.log(prices) - self.centre) / self.spread if self.log_target else prices

    def decode(self, out):
        return np.exp(out * self.spread + self.centre) if self.log_target else out


def mlp(n_in, hidden, layers):
    mods, width = [], n_in
    for _ in range(layers):
        mods += [nn.Linear(width, hidden), nn.ReLU()]
        width = hidden
    return nn.Sequential(*mods, nn.Linear(width, 1), nn.Flatten(0))


def main():
    opts = load_options()
    torch.manual_seed(0)
    x, price = listings(2000, 1)
    xv, price_v = listings(400, 2)
    mean, std = x.mean(0), x.std(0)
    transform = PriceTransform(opts["log_target"], price)
    x, xv = (torch.from_numpy((a - mean) / std) for a in (x, xv))
    y = torch.from_numpy(transform.encode(price).astype(np.float32))

    net = mlp(x.shape[1], opts["hidden"], opts["layers"])
    optimizer = torch.optim.Adam(net.parameters(), lr=opts["lr"])
    for epoch in range(opts["epochs"]):
        net.train()
        running = 0.0
        for idx in torch.randperm(len(x)).split(opts["batch_size"]):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        net.eval()
        with torch.no_grad():
            guess = transform.decode(net(xv).numpy())
        mape = np.abs(guess - price_v).mean() / price_v.mean()
        print(f"epoch {epoch:2d}  train loss {running / len(x):.4g}  relative error {mape:.1%}")


if __name__ == "__main__":
    main()
