from torch import nn, optim
from torch.optim import lr_scheduler

OPTIMIZERS = {"adamw": optim.AdamW, "sgd": optim.SGD}
SCHEDULERS = {
    "cosine": lr_scheduler.CosineAnnealingLR,
    "step": lr_scheduler.StepLR,
    "plateau": lr_scheduler.ReduceLROnPlateau,
}


def build_model(cfg, n_features):
    dims = [n_features] + cfg["hidden"]
    layers = []
    for i, o in zip(dims, dims[1:]):
        layers += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU(), nn.Dropout(cfg["dropout"])]
    layers.append(nn.Linear(dims[-1], 1))
    return nn.Sequential(*layers)


def build_optimizer(cfg, params):
    cfg = dict(cfg)
    return OPTIMIZERS[cfg.pop("name")](params, **cfg)


def build_scheduler(cfg, optimizer):
    return SCHEDULERS[cfg["name"]](optimizer, **cfg["params"])
