import torch
from torch import nn


class TinyViT(nn.Module):
    """Vision transformer over the sixteen 2x2 patches of an 8x8 image."""

    def __init__(self, dim=32, depth=2, heads=4, num_classes=10):
        super().__init__()
        self.to_patches = nn.Conv2d(1, dim, kernel_size=2, stride=2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, dim))
        layer = nn.TransformerEncoderLayer(
            dim, heads, dim_feedforward=2 * dim, dropout=0.1, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        tokens = self.to_patches(images).flatten(2).transpose(1, 2)
        cls = self.cls_token.expand(len(images), -1, -1)
        tokens = torch.cat([cls, tokens], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(tokens)[:, 0]))
