import torch


def pairwise_distances(emb):
    """Euclidean distance matrix of a batch of embeddings."""
    diff = emb.unsqueeze(0) - emb.unsqueeze(1)
    return torch.sqrt((diff ** 2).sum(dim=-1))


def batch_all_triplet(emb, labels, margin=0.4):
    dist = pairwise_distances(emb)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    eye = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    pos, neg = same & ~eye, ~same
    valid = pos.unsqueeze(2) & neg.unsqueeze(1)
    gap = dist.unsqueeze(2) - dist.unsqueeze(1) + margin
    gap = torch.relu(gap) * valid
    active = (gap > 0).sum()
    return gap.sum() / active.clamp(min=1)
