from pathlib import Path

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

from stream import ShardStream, write_shards


class Settings(dict):
    """Nested dict with attribute access: cfg.run.lr"""

    def __getattr__(self, key):
        try:
            value = self[key]
        except KeyError as e:
            raise AttributeError(key) from e
        return Settings(value) if isinstance(value, dict) else value


def build(cfg):
    shards, held = write_shards(cfg.data.val_fraction, cfg.run.seed)
    stream = ShardStream(shards, shuffle_buffer=cfg.get("shuffle_buffer", 0), seed=cfg.run.seed)
    loader = DataLoader(stream, batch_size=cfg.data.batch_size)
    net = nn.Sequential(nn.Linear(64, cfg.model.hidden), nn.ReLU(), nn.Linear(cfg.model.hidden, 10))
    return loader, held, net


def train(cfg):
    torch.manual_seed(cfg.run.seed)
    loader, (vx, vy), net = build(cfg)
    sgd = torch.optim.SGD(net.parameters(), lr=cfg.run.lr, momentum=cfg.run.momentum)
    objective = nn.CrossEntropyLoss()
    for epoch in range(cfg.run.epochs):
        net.train()
        total, count = 0.0, 0
        for x, y in loader:
            sgd.zero_grad()
            loss = objective(net(x), y)
            loss.backward()
            sgd.step()
            total += loss.item() * len(y)
            count += len(y)
        net.eval()
        with torch.no_grad():
            acc = (net(vx).argmax(1) == vy).float().mean().item()
        print(f"epoch {epoch}: loss {total / count:.3f}, validation accuracy {acc:.3f}")


if __name__ == "__main__":
    train(Settings(yaml.safe_load(Path(__file__).with_name("config.yaml").read_text())))
