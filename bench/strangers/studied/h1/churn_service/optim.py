"""Optimizer construction. The base rate is tuned for `reference_batch` rows per step
and is scaled linearly with the batch that is actually used."""
import torch


def scaled_rate(settings):
    ratio = settings["batch_size"] // settings["reference_batch"]
    return settings["base_lr"] * ratio


def build_optimizer(model, settings):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 1e-4}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=scaled_rate(settings))
