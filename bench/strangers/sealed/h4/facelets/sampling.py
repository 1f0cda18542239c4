import numpy as np
from torch.utils.data import Sampler


class IdentityBatchSampler(Sampler):
    """P identities x K pictures per batch, as usual in metric learning."""

    def __init__(self, identities, p, k, batches, seed=0):
        self.p, self.k, self.batches = p, k, batches
        self.rng = np.random.default_rng(seed)
        self.by_id = {}
        for i, ident in enumerate(identities):
            self.by_id.setdefault(int(ident), []).append(i)

    def draw(self, ident):
        pool = self.by_id[ident]
        return self.rng.choice(pool, self.k, replace=len(pool) < self.k).tolist()

    def __iter__(self):
        names = list(self.by_id)
        for b in range(self.batches):
            chosen = self.rng.permutation(names)[:self.p]
            batch = []
            for j in range(self.p):
                batch += self.draw(int(chosen[b % self.p]))
            yield batch

    def __len__(self):
        return self.batches
