from pathlib import Path

import torch
import yaml
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

from factory import build_model, build_optimizer, build_scheduler
from trainer import Trainer


def loaders(cfg, batch_size, seed):
    X, y = make_classification(cfg["n_samples"], cfg["n_features"], n_informative=8, weights=[0.7], random_state=seed)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    sc = StandardScaler().fit(Xa)
    mk = lambda x, t: TensorDataset(torch.tensor(sc.transform(x), dtype=torch.float32), torch.tensor(t, dtype=torch.float32))
    return DataLoader(mk(Xa, ya), batch_size, shuffle=True, drop_last=True), DataLoader(mk(Xb, yb), 512)


def main():
    cfg = yaml.safe_load((Path(__file__).parent / "config.yaml").read_text())
    torch.manual_seed(cfg["seed"])
    train, val = loaders(cfg["data"], cfg["train"]["batch_size"], cfg["seed"])
    model = build_model(cfg["model"], cfg["data"]["n_features"])
    optimizer = build_optimizer(cfg["optim"], model.parameters())
    scheduler = build_scheduler(cfg["scheduler"], optimizer)
    Trainer(model, optimizer, scheduler, cfg["train"]["epochs"]).fit(train, val)


if __name__ == "__main__":
    main()
