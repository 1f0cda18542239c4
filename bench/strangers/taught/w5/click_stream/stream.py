import gzip
import json
import random

import torch
import torch.distributed as dist
from torch.utils.data import IterableDataset, get_worker_info


class ClickFiles(IterableDataset):
    def __init__(self, files, n_buckets, seed=0, shuffle_buffer=4096):
        super().__init__()
        self.files, self.n_buckets, self.seed, self.buf = sorted(files), n_buckets, seed, shuffle_buffer

    def _shard(self):
        rank = dist.get_rank() if dist.is_initialized() else 0
        world = dist.get_world_size() if dist.is_initialized() else 1
        info = get_worker_info()
        wid, nw = (info.id, info.num_workers) if info else (0, 1)
        return rank * nw + wid, world * nw

    def _parse(self, line):
        r = json.loads(line)
        return torch.tensor([hash_bucket(f, self.n_buckets) for f in r["features"]]), float(r["click"])

    def __iter__(self):
        shard, n_shards = self._shard()
        mine = self.files[shard::n_shards]
        if not mine:
            raise RuntimeError(f"{len(self.files)} files are too few for {n_shards} readers")
        rng = random.Random(self.seed * 100003 + shard)
        hold = []
        while True:  # endless; the training loop decides how many steps make an epoch
            rng.shuffle(mine)
            for path in mine:
                with gzip.open(path, "rt") as f:
                    for line in f:
                        hold.append(self._parse(line))
                        if len(hold) >= self.buf:
                            k = rng.randrange(len(hold))
                            hold[k], hold[-1] = hold[-1], hold[k]
                            yield hold.pop()


def hash_bucket(text, n):
    h = 2166136261
    for c in text.encode():
        h = ((h ^ c) * 16777619) & 0xFFFFFFFF
    return h % n
