import json
import pathlib
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import nets  # noqa: F401  (fills the registries)
from registry import LOSSES, MODELS, OPTIMIZERS


def synth(n, spec, seed, world=0):
    w = torch.Generator().manual_seed(world)
    topic_words = torch.rand(spec["topics"], spec["vocab"], generator=w) ** 4
    topic_words[:, 0] = 0
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, spec["topics"], (n,), generator=g)
    x = torch.multinomial(topic_words[y], spec["length"], replacement=True, generator=g)
    return TensorDataset(x, y)


def run(cfg):
    torch.manual_seed(cfg["seed"])
    d = cfg["data"]
    train = DataLoader(synth(d["train"], d, 1), cfg["batch_size"], shuffle=True)
    valid = DataLoader(synth(d["valid"], d, 2), cfg["batch_size"])

    model = MODELS.build(cfg["model"], d["vocab"], d["topics"])
    loss_fn = LOSSES.build(cfg["loss"])
    opt = OPTIMIZERS.build(cfg["optimizer"], model.parameters())

    for epoch in range(cfg["epochs"]):
        model.train()
        total = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            opt.step()
            total += loss.item() * len(x)
        model.eval()
        with torch.no_grad():
            correct = sum((model(x).argmax(1) == y).sum().item() for x, y in valid)
        print(f"epoch {epoch}: loss {total / d['train']:.4f}  valid accuracy {correct / d['valid']:.3f}")
    return model


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("config.json")
    run(json.loads(pathlib.Path(path).read_text()))
