from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "tanh": nn.Tanh, "identity": nn.Identity}


def build_mlp(n_in, n_out, hidden, act="identity"):
    layers, prev = [], n_in
    for h in hidden:
        layers += [nn.Linear(prev, h), ACTIVATIONS[act]()]
        prev = h
    layers.append(nn.Linear(prev, n_out))
    return nn.Sequential(*layers)


def from_config(cfg, n_in, n_out):
    kwargs = {k: cfg[k] for k in ("hidden", "act") if k in cfg}
    return build_mlp(n_in, n_out, **kwargs)
