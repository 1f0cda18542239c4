import random
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info


class TokenStream(IterableDataset):
    """Endless stream of (block+1) token windows out of uint16 .bin shards."""

    def __init__(self, root, block_size, seed=1234):
        self.shards = sorted(Path(root).glob("*.bin"))
        if not self.shards:
            raise FileNotFoundError(root)
        self.block_size = block_size
        self.seed = seed

    def _windows(self, path, rng):
        arr = np.memmap(path, dtype=np.uint16, mode="r")
        n = (len(arr) - 1) // self.block_size
        order = list(range(n))
        rng.shuffle(order)
        for j in order:
            s = j * self.block_size
            chunk = arr[s:s + self.block_size + 1].astype(np.int64)
            yield torch.from_numpy(chunk[:-1]), torch.from_numpy(chunk[1:])

    def __iter__(self):
        info = get_worker_info()
        wid, nw = (info.id, info.num_workers) if info is not None else (0, 1)
        epoch = 0
        while True:
            rng = random.Random(self.seed + epoch)
            shards = list(self.shards)
            rng.shuffle(shards)
            for path in shards[wid::nw]:
                yield from self._windows(path, rng)
            epoch += 1
