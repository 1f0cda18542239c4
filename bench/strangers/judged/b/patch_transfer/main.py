"""Self-supervised pretraining on unlabelled digits, then fine-tuning with few labels."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

import stages


def main(seed=0, few=500):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    d = load_digits()
    order = np.random.default_rng(seed).permutation(len(d.target))
    img = torch.tensor(d.images[order] / 8.0 - 1.0, dtype=torch.float32)
    lab = torch.tensor(d.target[order])
    pool, held = slice(0, 1300), slice(1300, None)
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "mae.pt"
        print("stage 1")
        stages.pretrain(img[pool], path, epochs=4, g=g)
        print("stage 2")
        stages.finetune((img[:few], lab[:few]), (img[held], lab[held]), path, epochs=8, g=g)


if __name__ == "__main__":
    main()
