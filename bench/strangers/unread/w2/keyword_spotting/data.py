import functools

import torch
from torch.utils.data import DataLoader, Dataset

WORDS = ["ja", "nein", "stopp", "weiter"]
N_MELS, MAX_FRAMES = 20, 48


class SyntheticKeywords(Dataset):
    """Each word is a formant track with its own slope; length and loudness differ."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            label = int(torch.randint(0, len(WORDS), (1,), generator=g))
            frames = int(torch.randint(24, MAX_FRAMES + 1, (1,), generator=g))
            time = torch.linspace(0, 1, frames)
            start, slope = [(4, 10), (15, -10), (6, 2), (13, -1)][label]
            centre = start + slope * time + torch.randn(1, generator=g)
            mel = torch.arange(N_MELS).float()
            spec = torch.exp(-((mel[None] - centre[:, None]) ** 2) / 8)
            spec = spec * (0.6 + torch.rand(1, generator=g)) + 0.25 * torch.randn(frames, N_MELS, generator=g)
            self.items.append((spec, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def spec_augment(batch, lengths, max_t=14, max_f=7, n_masks=2):
    batch = batch.clone()
    for k, length in enumerate(lengths):
        for _ in range(n_masks):
            t = int(torch.randint(0, max_t + 1, (1,)))
            t0 = int(torch.randint(0, max(1, int(length) - t), (1,)))
            f = int(torch.randint(0, max_f + 1, (1,)))
            f0 = int(torch.randint(0, N_MELS - f + 1, (1,)))
            batch[k, t0:t0 + t] = 0
            batch[k, :, f0:f0 + f] = 0
    return batch


def collate(items, augment):
    specs, labels = zip(*items)
    lengths = torch.tensor([len(s) for s in specs])
    batch = torch.nn.utils.rnn.pad_sequence(specs, batch_first=True)
    if augment:
        batch = spec_augment(batch, lengths)
    return batch, lengths, torch.tensor(labels)


def build_loaders(cfg):
    common = dict(
        batch_size=cfg["batch_size"],
        collate_fn=functools.partial(collate, augment=cfg["spec_augment"]),
        num_workers=0,
    )
    train = DataLoader(SyntheticKeywords(600, seed=1), shuffle=True, drop_last=True, **common)
    valid = DataLoader(SyntheticKeywords(200, seed=2), shuffle=False, **common)
    return train, valid
