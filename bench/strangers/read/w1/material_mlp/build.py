"""Turns a textual description into a network."""
import torch.nn as nn

ACTIVATIONS = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "none": nn.Identity,
}


def parse(text):
    spec = {}
    for line in text.strip().splitlines():
        key, value = (part.strip() for part in line.split(":", 1))
        if value.startswith("["):
            value = [int(v) for v in value.strip("[]").split(",")]
        else:
            for kind in (int, float):
                try:
                    value = kind(value)
                    break
                except ValueError:
                    pass
        spec[key] = value
    return spec


def mlp(spec, n_in, n_out):
    act = ACTIVATIONS.get(spec["activation"], nn.Identity)
    layers = []
    for width in spec["widths"]:
        layers += [nn.Linear(n_in, width), act()]
        n_in = width
    layers.append(nn.Linear(n_in, n_out))
    return nn.Sequential(*layers)
