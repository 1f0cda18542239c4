"""Turns the json description of an experiment into torch objects."""
import torch
from torch import nn

LAYERS, LOSSES, OPTIMIZERS = {}, {}, {}


def register(table, name):
    def deco(fn):
        table[name] = fn
        return fn
    return deco


@register(LAYERS, "linear")
def _linear(width, out):
    return nn.Linear(width, out), out


@register(LAYERS, "batchnorm")
def _bn(width):
    return nn.BatchNorm1d(width), width


@register(LAYERS, "relu")
def _relu(width):
    return nn.ReLU(), width


@register(LAYERS, "dropout")
def _dropout(width, p):
    return nn.Dropout(p), width


@register(LAYERS, "softmax")
def _softmax(width):
    return nn.Softmax(dim=1), width


@register(LAYERS, "sigmoid")
def _sigmoid(width):
    return nn.Sigmoid(), width


LOSSES["cross_entropy"] = nn.CrossEntropyLoss
LOSSES["mse"] = nn.MSELoss
OPTIMIZERS["adam"] = torch.optim.Adam
OPTIMIZERS["sgd"] = torch.optim.SGD


def pop_type(spec):
    spec = dict(spec)
    return spec.pop("type"), spec


def build_network(specs, width):
    layers = []
    for spec in specs:
        kind, kw = pop_type(spec)
        layer, width = LAYERS[kind](width, **kw)
        layers.append(layer)
    return nn.Sequential(*layers)


def build_loss(spec):
    kind, kw = pop_type(spec)
    return LOSSES[kind](**kw)


def build_optimizer(spec, params):
    kind, kw = pop_type(spec)
    return OPTIMIZERS[kind](params, **kw)
