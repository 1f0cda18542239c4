import torch.nn as nn

ACTIVATIONS = {
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
    "softmax": lambda: nn.Softmax(dim=-1),
    "linear": nn.Identity,
}


class DenseStack(nn.Module):
    """Dense layers described by a list of sizes."""

    def __init__(self, n_in, sizes, n_out, activation, output_activation, dropout):
        super().__init__()
        layers = []
        prev = n_in
        for s in sizes:
            layers += [nn.Linear(prev, s), ACTIVATIONS[activation](), nn.Dropout(dropout)]
            prev = s
        layers += [nn.Linear(prev, n_out), ACTIVATIONS[output_activation]()]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class ActivityNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(cfg.n_channels, 32, 5, padding=2),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
        )
        self.dense = DenseStack(
            32 * 4, cfg.hidden, cfg.n_classes,
            cfg.activation, cfg.output_activation, cfg.dropout,
        )

    def forward(self, x):
        return self.dense(self.conv(x).flatten(1))
