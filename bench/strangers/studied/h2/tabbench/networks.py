from torch import nn

ACTIVATIONS = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
    "none": nn.Identity,
}


def get_activation(name):
    return ACTIVATIONS.get(name, nn.Identity)


class MLP(nn.Module):
    def __init__(self, n_in, n_out, hidden, activation="relu", batch_norm=False):
        super().__init__()
        act = get_activation(activation)
        layers = []
        for width in hidden:
            layers.append(nn.Linear(n_in, width))
            if batch_norm:
                layers.append(nn.BatchNorm1d(width))
            layers.append(act())
            n_in = width
        layers.append(nn.Linear(n_in, n_out))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)
