import os
import random

import numpy as np
import torch


class CFG:
    seed = 2023
    size = 32
    epochs = 4
    bs = 16
    lr = 2e-3
    num_workers = 2
    thr = 0.5


def set_seed(seed=CFG.seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True


def init_worker(worker_id):
    set_seed(CFG.seed)


class AverageMeter:
    def __init__(self):
        self.sum = self.n = 0

    def update(self, v, n=1):
        self.sum += v * n
        self.n += n

    @property
    def avg(self):
        return self.sum / max(1, self.n)
