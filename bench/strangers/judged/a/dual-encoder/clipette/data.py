import torch


class PairStream(torch.utils.data.IterableDataset):
    """Pairs (image vector, token ids) that share a hidden concept vector."""

    def __init__(self, n, seed, world_seed=0, concept=6, img_dim=40, vocab=50, length=6):
        g = torch.Generator().manual_seed(world_seed)
        self.mix = torch.randn(concept, img_dim, generator=g)
        self.words = torch.randn(concept, vocab, generator=g)
        self.n, self.seed, self.concept, self.length = n, seed, concept, length
        self.epoch = 0

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        for _ in range(self.n):
            z = torch.randn(self.concept, generator=g)
            img = z @ self.mix + 0.1 * torch.randn(self.mix.size(1), generator=g)
            probs = (2 * z @ self.words).softmax(-1)
            yield img, torch.multinomial(probs, self.length, replacement=True, generator=g)
