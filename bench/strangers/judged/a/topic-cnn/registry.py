from functools import partial

import torch
from torch import nn


class Registry(dict):
    def register(self, name):
        def deco(obj):
            self[name] = obj
            return obj
        return deco

    def build(self, spec, *args, **extra):
        spec = dict(spec)
        return self[spec.pop("type")](*args, **spec, **extra)


MODELS, HEADS = Registry(), Registry()
LOSSES = Registry(cross_entropy=nn.CrossEntropyLoss, bce=nn.BCEWithLogitsLoss, mse=nn.MSELoss)
OPTIMIZERS = Registry(adamw=torch.optim.AdamW, sgd=partial(torch.optim.SGD, momentum=0.9))
ACTIVATIONS = {
    None: nn.Identity,
    "softmax": partial(nn.Softmax, dim=-1),
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}
