import torch.nn as nn

from .base import BaseSRModel


class ESPCN(BaseSRModel):
    """Shi et al. 2016: sub-pixel convolution."""

    def __init__(self, scale=2, in_channels=1, width=32):
        super().__init__(scale, in_channels)
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, width, 5, padding=2),
            nn.Tanh(),
            nn.Conv2d(width, width // 2, 3, padding=1),
            nn.Tanh(),
        )
        self.to_pixels = nn.Sequential(
            nn.Conv2d(width // 2, in_channels * scale ** 2, 3, padding=1),
            nn.PixelShuffle(scale),
        )

    def forward(self, lr_image):
        return self.to_pixels(self.features(lr_image))
