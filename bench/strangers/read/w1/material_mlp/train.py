import torch
from torch import nn
from sklearn.datasets import make_friedman1
from torch.utils.data import DataLoader, TensorDataset

from build import mlp, parse

SPEC = """
widths: [64, 64, 32]
activation: ReLU
lr: 0.001
batch_size: 50
epochs: 30
seed: 42
"""


def tensors(x, y, stats=None):
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1)
    if stats is None:
        stats = x.mean(0), x.std(0), y.mean(), y.std()
    mx, sx, my, sy = stats
    return TensorDataset((x - mx) / sx, (y - my) / sy), stats


def r2(net, data):
    net.eval()
    with torch.no_grad():
        x, y = data.tensors
        return 1 - ((net(x) - y).square().sum() / (y - y.mean()).square().sum()).item()


def main():
    spec = parse(SPEC)
    torch.manual_seed(spec["seed"])
    x, y = make_friedman1(1500, noise=0.5, random_state=spec["seed"])
    train, stats = tensors(x[:1000], y[:1000])
    val, _ = tensors(x[1000:1250], y[1000:1250], stats)
    test, _ = tensors(x[1250:], y[1250:], stats)

    net = mlp(spec, x.shape[1], 1)
    opt = torch.optim.Adam(net.parameters(), lr=spec["lr"])
    mse = nn.MSELoss()
    for epoch in range(spec["epochs"]):
        net.train()
        for xb, yb in DataLoader(train, spec["batch_size"], shuffle=True):
            opt.zero_grad()
            loss = mse(net(xb), yb)
            loss.backward()
            opt.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} R2 train {r2(net, train):.3f} val {r2(net, val):.3f}")
    print(f"R2 test {r2(net, test):.3f}")


if __name__ == "__main__":
    main()
