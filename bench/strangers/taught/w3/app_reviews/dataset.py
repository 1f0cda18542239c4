import json
from pathlib import Path

import torch
from torch.utils.data import Dataset


class ReviewDataset(Dataset):
    """App store reviews, one json object per line: {"text": ..., "stars": 1..5}."""

    def __init__(self, root, vocab, max_len=128, split="train", limit=None):
        self.vocab, self.max_len = vocab, max_len
        lines = (Path(root) / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
        self.rows = [json.loads(l) for l in lines[:limit]]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        ids = [self.vocab.get(w, 1) for w in row["text"].lower().split()][: self.max_len]
        return torch.tensor(ids or [1]), row["stars"] - 1


def pad_batch(batch):
    xs, ys = zip(*batch)
    lens = torch.tensor([len(x) for x in xs])
    x = torch.nn.utils.rnn.pad_sequence(xs, batch_first=True, padding_value=0)
    return x, lens, torch.tensor(ys)
