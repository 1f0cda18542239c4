"""Thin layer helpers so that the old Keras definitions port line by line."""
from torch import nn

ACTIVATIONS = {
    "relu": lambda: nn.ReLU(),
    "elu": lambda: nn.ELU(),
    "softmax": lambda: nn.Softmax(dim=-1),
    "linear": lambda: nn.Identity(),
}


def conv_block(c_in, c_out, activation):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding="same"),
        nn.BatchNorm2d(c_out),
        ACTIVATIONS[activation](),
        nn.MaxPool2d(2),
    )


def dense(n_in, units, activation="linear"):
    return nn.Sequential(nn.Linear(n_in, units), ACTIVATIONS[activation]())


def build_model(cfg, size, n_classes):
    blocks, c_in = [], 1
    for f in cfg["filters"]:
        blocks.append(conv_block(c_in, f, cfg["hidden_activation"]))
        c_in, size = f, size // 2
    return nn.Sequential(
        *blocks,
        nn.Flatten(),
        dense(c_in * size * size, cfg["dense_units"], cfg["hidden_activation"]),
        dense(cfg["dense_units"], n_classes, cfg["output_activation"]),
    )
