import torch


def param_groups(model, weight_decay):
    """Weights are decayed, biases and norm scales are not."""
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        leaf = name.split(".")[-1]
        if leaf == "bias" or "norm" in name:
            no_decay.append(p)
        elif leaf == "weight":
            decay.append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]


def build(model, lr, weight_decay):
    return torch.optim.AdamW(param_groups(model, weight_decay), lr=lr)
