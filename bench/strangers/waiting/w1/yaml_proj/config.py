import argparse

import yaml


def parse():
    p = argparse.ArgumentParser(description="Segment cells")
    p.add_argument("--config", default="configs/segnet.yaml")
    p.add_argument("--lr", type=float, default=1e-5, help="learning rate")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch_size", type=int, default=64)
    p.add_argument("--device", default="cpu")
    return p.parse_args()


def load_config():
    """Values of the yaml file; anything given on the command line wins."""
    args = parse()
    with open(args.config) as f:
        cfg = yaml.safe_load(f)
    where = {"lr": "optim", "epochs": "optim", "batch_size": "data"}
    for key, section in where.items():
        value = getattr(args, key)
        if value is not None:
            cfg[section][key] = value
    cfg["device"] = args.device
    return cfg
