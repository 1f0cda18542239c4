import torch


def pairwise_distance(z):
    """Euclidean distance of every pair in the batch, (B, B)."""
    diff = z.unsqueeze(1) - z.unsqueeze(0)
    return diff.pow(2).sum(-1).sqrt()


class BatchHard:
    """Hermans et al. 2017: for each anchor the farthest positive and the nearest negative."""

    def __init__(self, margin=0.3, soft=False):
        self.margin, self.soft = margin, soft

    def __call__(self, z, ids):
        d = pairwise_distance(z)
        same = ids.unsqueeze(0) == ids.unsqueeze(1)
        hardest_pos = (d * same).max(dim=1).values
        hardest_neg = d.masked_fill(same, 1e4).min(dim=1).values
        gap = hardest_pos - hardest_neg
        if self.soft:
            return torch.nn.functional.softplus(gap).mean()
        # every pair contributes a little so that all embeddings keep moving
        spread = (d * same).sum() / same.sum()
        return torch.relu(gap + self.margin).mean() + 0.05 * spread
