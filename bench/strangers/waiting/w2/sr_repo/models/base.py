import abc

import torch
import torch.nn as nn


class BaseSRModel(nn.Module, abc.ABC):
    """Common part of all super-resolution models in this repo."""

    def __init__(self, scale, in_channels=1):
        self.scale = scale
        self.in_channels = in_channels
        self.name = type(self).__name__.lower()

    @abc.abstractmethod
    def forward(self, lr_image):
        ...

    def n_params(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    @torch.no_grad()
    def upscale(self, img):
        was_training = self.training
        self.eval()
        out = self(img.unsqueeze(0)).squeeze(0).clamp(0, 1)
        self.train(was_training)
        return out
