import csv
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class HumRecordings(Dataset):
    def __init__(self, root, window=256):
        root = Path(root)
        self.files = sorted(root.glob("rec_*.npy"))
        with open(root / "labels.csv") as fh:
            self.states = [int(row["state"]) for row in csv.DictReader(fh)]
        if len(self.files) != len(self.states):
            raise ValueError(f"{len(self.files)} recordings but {len(self.states)} labels")
        self.hann = torch.hann_window(window)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        wave = torch.from_numpy(np.load(self.files[i]))
        spectrum = torch.fft.rfft(wave * self.hann).abs()[:64]
        return torch.log1p(spectrum), self.states[i]
