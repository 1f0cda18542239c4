import numpy as np
import torch


def reviews(n, vocab, max_len, seed):
    """Bags of word ids; words below vocab//4 are negative, the next quarter positive."""
    rng = np.random.default_rng(seed)
    q = vocab // 4
    ids = np.zeros((n, max_len), dtype=np.int64)
    stars = rng.integers(0, 3, n)
    for row, s in enumerate(stars):
        length = rng.integers(8, max_len + 1)
        words = rng.integers(2 * q, vocab, length)
        polar = rng.random(length) < 0.35
        p_good = (0.1, 0.5, 0.9)[s]
        good = rng.random(length) < p_good
        words[polar & good] = rng.integers(q, 2 * q, (polar & good).sum())
        words[polar & ~good] = rng.integers(1, q, (polar & ~good).sum())
        ids[row, :length] = words
    return torch.from_numpy(ids), torch.from_numpy(stars)
