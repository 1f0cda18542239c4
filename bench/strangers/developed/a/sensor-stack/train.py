import json
import pathlib
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

from factory import build_loss, build_network, build_optimizer


def gestures(n, channels, classes, gen):
    proto = torch.randn(classes, channels, generator=gen)
    y = torch.randint(classes, (n,), generator=gen)
    return TensorDataset(proto[y] + 0.9 * torch.randn(n, channels, generator=gen), y)


def main(path):
    cfg = json.loads(pathlib.Path(path).read_text())
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    d = cfg["data"]
    full = gestures(d["n"], d["channels"], d["classes"], gen)
    n_val = int(d["n"] * d["val_fraction"])
    train_set, val_set = random_split(full, [d["n"] - n_val, n_val], generator=gen)
    loaders = {"train": DataLoader(train_set, cfg["batch_size"], shuffle=True),
               "val": DataLoader(val_set, 256)}

    net = build_network(cfg["network"], d["channels"])
    criterion = build_loss(cfg["loss"])
    optimizer = build_optimizer(cfg["optimizer"], net.parameters())

    for epoch in range(cfg["epochs"]):
        for phase, loader in loaders.items():
            training = phase == "train"
            net.train(training)
            loss_sum, right, n = 0.0, 0, 0
            with torch.set_grad_enabled(training):
                for x, y in loader:
                    scores = net(x)
                    loss = criterion(scores, y)
                    if training:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
                    loss_sum += loss.item() * len(y)
                    right += (scores.argmax(1) == y).sum().item()
                    n += len(y)
            if epoch % 4 == 3:
                print(f"{epoch + 1:3d} {phase:5s} loss {loss_sum / n:.4f} acc {right / n:.3f}")


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    main(sys.argv[1] if len(sys.argv) > 1 else here / "config.json")
