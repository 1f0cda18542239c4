import numpy as np
import torch
from torch.utils.data import Dataset


class ClickLog(Dataset):
    """Generated log: users prefer one topic; new users have not clicked anything yet."""

    def __init__(self, n_rows, n_items=300, n_topics=6, max_hist=15, seed=0):
        rng = np.random.default_rng(seed)
        self.n_items, self.max_hist = n_items, max_hist
        topic_of = np.arange(n_items) % n_topics
        self.rows = []
        for _ in range(n_rows):
            topic = rng.integers(n_topics)
            n_hist = min(max_hist, rng.geometric(0.15) - 1)
            pool = np.flatnonzero(topic_of == topic)
            hist = rng.choice(pool, n_hist) + 1
            item = rng.integers(n_items)
            p = 0.8 if topic_of[item] == topic else 0.1
            self.rows.append((int(rng.integers(4)), int(item) + 1, hist, float(rng.random() < p)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        seg, item, hist, click = self.rows[i]
        padded = np.zeros(self.max_hist, dtype=np.int64)
        if len(hist):
            padded[-len(hist):] = hist
        return seg, item, torch.from_numpy(padded), np.float32(click)
