from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.utils.data import ConcatDataset, Dataset

FEATURES = ["age", "hr", "sbp", "dbp", "temp", "spo2", "lactate", "creatinine", "wbc", "platelets"]
TARGET = "sepsis_24h"


class ClinicTable(Dataset):
    def __init__(self, path, mean, std):
        df = pd.read_parquet(path, columns=FEATURES + [TARGET]).dropna(subset=[TARGET])
        x = (df[FEATURES].to_numpy(np.float32) - mean) / std
        self.x = torch.from_numpy(np.nan_to_num(x))
        self.y = torch.from_numpy(df[TARGET].to_numpy(np.float32))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def rank_dataset(root, rank, world):
    """Data must not be mixed on disk, so whole clinics are dealt to the processes."""
    stats = np.load(Path(root) / "stats.npz")
    files = sorted(Path(root).glob("clinic_*.parquet"))
    return ConcatDataset([ClinicTable(f, stats["mean"], stats["std"]) for f in files[rank::world]])
