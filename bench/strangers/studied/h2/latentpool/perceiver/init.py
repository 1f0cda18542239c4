import math

import torch
from torch import nn


def trainable(*shape, std=None):
    """Tensor with requires_grad, normal with the given std (1/sqrt(last dim) by default)."""
    std = 1 / math.sqrt(shape[-1]) if std is None else std
    return torch.empty(*shape).normal_(0, std).requires_grad_()


def reset_linear(module):
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.05)
        nn.init.zeros_(module.bias)
