import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

from kws.loop import Runner
from kws.net import CRNN

CONFIG = dict(lr=3e-3, weight_decay=1e-2, label_smoothing=0.05, max_norm=1.0, batch_size=32, epochs=4)


def load(split):
    """features are dumped by prepare.py; falls back to random keywords for a smoke test"""
    try:
        blob = torch.load(f"features/{split}.pt")
        return TensorDataset(blob["mel"], blob["label"])
    except FileNotFoundError:
        proto = torch.randn(12, 40, 50, generator=torch.Generator().manual_seed(0))
        g = torch.Generator().manual_seed(len(split))
        y = torch.randint(12, (800 if split == "train" else 200,), generator=g)
        return TensorDataset(0.5 * proto[y] + torch.randn(len(y), 40, 50, generator=g), y)


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu")
    train = DataLoader(load("train"), CONFIG["batch_size"], shuffle=True, drop_last=True)
    test = DataLoader(load("test"), 100)
    CONFIG["total_steps"] = CONFIG["epochs"] * len(train)
    runner = Runner(CRNN(), CONFIG, device)
    for epoch in range(CONFIG["epochs"]):
        loss = runner.train_epoch(train)
        print(f"epoch {epoch}: loss {loss:.4f} acc {runner.accuracy(test):.4f}")
