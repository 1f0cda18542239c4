import torch
from torch.utils.data import Dataset

TAGS = ["politics", "sport", "science", "money", "travel", "health"]


class Articles(Dataset):
    """Bags of word ids. An article carries one to three tags."""

    def __init__(self, n, words=120, length=30, seed=0):
        gen = torch.Generator().manual_seed(seed)
        lexicon = torch.randperm(words, generator=torch.Generator().manual_seed(77)).view(len(TAGS), -1)
        self.tokens, self.tags = [], []
        for _ in range(n):
            k = int(torch.randint(1, 4, (1,), generator=gen))
            chosen = torch.randperm(len(TAGS), generator=gen)[:k]
            src = chosen[torch.randint(k, (length,), generator=gen)]
            ids = lexicon[src, torch.randint(lexicon.size(1), (length,), generator=gen)]
            noise = torch.rand(length, generator=gen) < 0.2
            ids = torch.where(noise, torch.randint(words, (length,), generator=gen), ids)
            hot = torch.zeros(len(TAGS))
            hot[chosen] = 1.0
            self.tokens.append(ids)
            self.tags.append(hot)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"tokens": self.tokens[i], "tags": self.tags[i]}
