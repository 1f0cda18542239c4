import torch
from torch import nn


class BandEncoder(nn.Module):
    """Encodes multi-band reflectance into a dense vector."""

    def __init__(self, bands, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(bands, dim), nn.BatchNorm1d(dim), nn.GELU(), nn.Dropout(0.4),
            nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.GELU(), nn.Dropout(0.4))

    def forward(self, x):
        return self.net(x)


def describe(encoder, bands):
    """Parameter count and output width, printed into the run log."""
    encoder.eval()
    with torch.no_grad():
        width = encoder(torch.zeros(1, bands)).shape[-1]
    return sum(p.numel() for p in encoder.parameters()), width


def create_encoder(bands, dim=192):
    encoder = BandEncoder(bands, dim)
    params, width = describe(encoder, bands)
    print(f"encoder: {params} parameters, {width} outputs")
    return encoder, width
