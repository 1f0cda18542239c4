import csv
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset


class LeafDataset(Dataset):
    def __init__(self, root, transform=None):
        root = Path(root)
        self.files = sorted((root / "photos").glob("*.npy"))
        with open(root / "labels.csv") as fh:
            self.labels = [int(row["disease"]) for row in csv.DictReader(fh)]
        assert len(self.files) == len(self.labels), "dump is incomplete"
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = torch.from_numpy(np.load(self.files[i]))
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[i]
