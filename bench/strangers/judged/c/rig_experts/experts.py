import torch
from torch import nn


def make_encoder(width, d_model):
    return nn.Sequential(
        nn.Linear(width, d_model),
        nn.ReLU(),
        nn.Linear(d_model, d_model),
        nn.ReLU(),
    )


class RigNet(nn.Module):
    """One encoder per sensor; a softmax gate decides how much each of them contributes."""

    def __init__(self, cfg):
        super().__init__()
        self.names = sorted(cfg.sensors)
        # sensor names contain dots ("imu.acc"), so they are looked up by plain key
        self.encoders = {name: make_encoder(cfg.sensors[name], cfg.d_model) for name in self.names}
        self.gate = nn.Linear(cfg.d_model, 1)
        self.classifier = nn.Sequential(
            nn.LayerNorm(cfg.d_model),
            nn.Linear(cfg.d_model, cfg.n_states),
        )

    def forward(self, readings):
        codes = torch.stack([self.encoders[n](readings[n]) for n in self.names], dim=1)
        weight = torch.softmax(self.gate(codes), dim=1)
        return self.classifier((weight * codes).sum(dim=1))
