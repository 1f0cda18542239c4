import sys

import torch
from torch import nn

from data import tensors
from utils import fix_seeds, read_config


def build(width):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Flatten(),
        nn.Linear(2 * width * 16, 10),
    )


@torch.no_grad()
def accuracy(net, which):
    x, y = tensors(which)
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def main(cfg):
    fix_seeds(cfg["seed"])
    net = build(cfg["width"])
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    x, y = tensors("train")
    for epoch in range(cfg["epochs"]):
        net.train()
        for rows in torch.randperm(len(x)).split(cfg["batch_size"]):
            loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch}  loss {loss.item():.4f}  valid {accuracy(net, 'valid'):.4f}")
    print(f"seed {cfg['seed']}  test {accuracy(net, 'test'):.4f}")


if __name__ == "__main__":
    main(read_config(sys.argv[1] if len(sys.argv) > 1 else "config.yaml"))
