import pathlib

import torch
import yaml
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import Distil, Engine, hard_labels


def convnet(width):
    return nn.Sequential(
        nn.Conv2d(1, width // 2, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width // 2, width, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(width * 4, 10),
    )


def data(seed, bs):
    d = load_digits()
    a, b, c, e = train_test_split(d.images, d.target, test_size=0.25, random_state=seed, stratify=d.target)
    t = lambda x, y: TensorDataset(torch.tensor(x / 16, dtype=torch.float32).unsqueeze(1), torch.tensor(y))
    return DataLoader(t(a, c), bs, shuffle=True), DataLoader(t(b, e), 256)


def fit(cfg, objective, loaders, device, tag):
    eng = Engine(convnet(cfg["width"]), cfg["lr"], device)
    for _ in range(cfg["epochs"]):
        eng.epoch(loaders[0], objective)
    print(f"{tag:9s} test accuracy {eng.accuracy(loaders[1]):.4f}")
    return eng.net


def main():
    cfg = yaml.safe_load((pathlib.Path(__file__).with_name("config.yaml")).read_text())
    torch.manual_seed(cfg["seed"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loaders = data(cfg["seed"], cfg["batch_size"])
    teacher = fit(cfg["teacher"], hard_labels, loaders, device, "teacher")
    fit(cfg["student"], hard_labels, loaders, device, "alone")
    fit(cfg["student"], Distil(teacher, cfg["temperature"], cfg["alpha"]), loaders, device, "distilled")


if __name__ == "__main__":
    main()
