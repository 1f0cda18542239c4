import torch
from torch import nn


class PatchEncoder(nn.Module):
    """8x8 image -> 16 tokens of 2x2 -> transformer"""

    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Linear(4, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, 16, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    @staticmethod
    def patches(img):
        return img.unfold(1, 2, 2).unfold(2, 2, 2).reshape(len(img), 16, 4)

    def forward(self, tokens):
        return self.blocks(self.embed(tokens) + self.pos)


class MaskedAutoencoder(nn.Module):
    def __init__(self, dim=32, ratio=0.5):
        super().__init__()
        self.encoder = PatchEncoder(dim)
        self.decoder = nn.Linear(dim, 4)
        self.blank = nn.Parameter(torch.zeros(4))
        self.ratio = ratio

    def forward(self, img):
        tok = self.encoder.patches(img)
        hide = torch.rand(tok.shape[:2], device=tok.device) < self.ratio
        seen = torch.where(hide[..., None], self.blank, tok)
        err = (self.decoder(self.encoder(seen)) - tok).pow(2).mean(-1)
        return (err * hide).sum() / hide.sum().clamp_min(1)


class DigitClassifier(nn.Module):
    def __init__(self, dim=32, classes=10):
        super().__init__()
        self.backbone = PatchEncoder(dim)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        return self.head(self.backbone(self.backbone.patches(img)).mean(1))
