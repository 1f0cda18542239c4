"""Everything random is a function of (seed, counter); there is no hidden state to save."""
import torch


def batch_indices(n, batch, seed, step):
    """Row numbers of the batch number `step`, counted from the very first step of the training."""
    per_epoch = n // batch
    epoch, k = divmod(step, per_epoch)
    perm = torch.randperm(n, generator=torch.Generator().manual_seed(seed * 100_003 + epoch))
    return perm[k * batch:(k + 1) * batch]


def reseed(seed, step):
    torch.manual_seed(seed * 1_000_003 + step)
