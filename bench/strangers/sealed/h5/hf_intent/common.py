import torch
from torch.utils.data import Dataset

VOCAB, LENGTH, PAD = 120, 16, 0


class Utterances(Dataset):
    """Word ids with an intent; an intent is a set of cue words among filler words."""

    def __init__(self, n, intents, cue_seed, seed):
        cues = torch.randperm(VOCAB - 20, generator=torch.Generator().manual_seed(cue_seed))[: intents * 6] + 20
        cues = cues.view(intents, 6)
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, intents, (n,), generator=g)
        self.ids = torch.randint(1, 20, (n, LENGTH), generator=g)
        for slot in range(4):
            where = torch.randint(0, LENGTH, (n,), generator=g)
            pick = torch.randint(0, 6, (n,), generator=g)
            self.ids[torch.arange(n), where] = cues[self.labels, pick]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(LENGTH, dtype=torch.long), "labels": self.labels[i]}


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}
