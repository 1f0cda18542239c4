import random

import numpy as np
import torch
import yaml


def fix_seeds(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def read_config(path):
    with open(path) as f:
        return yaml.safe_load(f)
