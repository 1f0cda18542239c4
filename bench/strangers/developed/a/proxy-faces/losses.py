import torch
import torch.nn.functional as F
from torch import nn


class ProxyAnchorLoss(nn.Module):
    """Proxy-Anchor (CVPR'20): one learnable proxy per identity pulls its samples and pushes the others."""

    def __init__(self, n_ids, dim, margin=0.1, alpha=16.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.empty(n_ids, dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")
        self.n_ids, self.margin, self.alpha = n_ids, margin, alpha

    def forward(self, emb, ids):
        cos = F.normalize(emb) @ F.normalize(self.proxies).t()
        onehot = F.one_hot(ids, self.n_ids).bool()
        pos = torch.where(onehot, torch.exp(-self.alpha * (cos - self.margin)), 0.0).sum(0)
        neg = torch.where(~onehot, torch.exp(self.alpha * (cos + self.margin)), 0.0).sum(0)
        present = onehot.any(0)
        return torch.log1p(pos)[present].mean() + torch.log1p(neg).mean()


class TripletHard(nn.Module):
    """Batch-hard triplet loss, the former default."""

    def __init__(self, margin=0.3):
        super().__init__()
        self.margin = margin

    def forward(self, emb, ids):
        e = F.normalize(emb)
        d = torch.cdist(e, e)
        same = ids[:, None] == ids[None]
        far = (d * same).max(1).values
        near = (d + 10.0 * same).min(1).values
        return F.relu(far - near + self.margin).mean()


LOSSES = {"proxy-anchor": ProxyAnchorLoss, "triplet": TripletHard}
