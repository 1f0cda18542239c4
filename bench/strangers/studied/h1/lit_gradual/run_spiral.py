import logging
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from callbacks import GradualUnfreeze, Progress
from module import BlockNet

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def spiral(n, seed):
    rng = np.random.default_rng(seed)
    k = rng.integers(0, 3, n)
    r = rng.uniform(0.1, 1, n)
    a = 4.0 * r + k * 2 * np.pi / 3 + rng.normal(0, 0.15, n)
    x = np.stack([r * np.cos(a), r * np.sin(a)], 1).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(k))


def main():
    pl.seed_everything(5, verbose=False)
    trainer = pl.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False,
                         callbacks=[GradualUnfreeze({1: 1, 2: 0}), Progress()])
    trainer.fit(BlockNet(), DataLoader(spiral(900, 0), batch_size=45, shuffle=True),
                DataLoader(spiral(300, 1), batch_size=300))


if __name__ == "__main__":
    main()
