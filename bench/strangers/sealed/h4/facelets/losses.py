import torch


def supervised_contrastive(z, ident, temperature=0.2):
    sim = z @ z.t() / temperature
    eye = torch.eye(len(z), dtype=torch.bool, device=z.device)
    sim = sim.masked_fill(eye, -1e9)
    logp = sim - torch.logsumexp(sim, dim=1, keepdim=True)
    positive = (ident[:, None] == ident[None, :]) & ~eye
    return -(logp * positive).sum(1).div(positive.sum(1).clamp(min=1)).mean()
