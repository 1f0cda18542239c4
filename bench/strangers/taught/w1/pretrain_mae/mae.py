import torch
from torch import nn


class TabMAE(nn.Module):
    """MAE on patches of small digit images (8x8 -> 16 patches of 2x2)."""

    def __init__(self, n_patches=16, patch_dim=4, dim=48, depth=2):
        super().__init__()
        layer = lambda: nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True, norm_first=True)
        self.embed = nn.Linear(patch_dim, dim)
        self.pos = nn.Parameter(torch.randn(1, n_patches, dim) * 0.02)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.encoder = nn.TransformerEncoder(layer(), depth, enable_nested_tensor=False)
        self.decoder = nn.TransformerEncoder(layer(), 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, patch_dim)

    def forward(self, patches, mask_ratio):
        B, N, _ = patches.shape
        keep = int(N * (1 - mask_ratio))
        order = torch.rand(B, N, device=patches.device).argsort(1)
        restore = order.argsort(1)
        x = self.embed(patches) + self.pos
        vis = torch.gather(x, 1, order[:, :keep, None].expand(-1, -1, x.size(-1)))
        h = self.encoder(vis)
        full = torch.cat([h, self.mask_token.expand(B, N - keep, -1)], 1)
        full = torch.gather(full, 1, restore[..., None].expand(-1, -1, h.size(-1))) + self.pos
        pred = self.head(self.decoder(full))
        mask = (restore >= keep).float()
        loss = ((pred - patches) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum()
