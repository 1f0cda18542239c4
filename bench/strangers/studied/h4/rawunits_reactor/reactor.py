import numpy as np
import torch


def measurements(n, seed):
    """temperature [K], pressure [Pa], feed [kg/h], catalyst [g] -> heat [W]"""
    r = np.random.default_rng(seed)
    temp = r.normal(620, 25, n)
    pres = r.normal(2.1e6, 1.5e5, n)
    feed = r.uniform(800, 1500, n)
    cat = r.uniform(0.5, 2.0, n)
    heat = (5.0e6 + 9e5 * np.tanh((temp - 620) / 30) + 3e5 * (pres - 2.1e6) / 1.5e5 + 900 * (feed - 1150)
            + 4e5 * np.log(cat) + r.normal(0, 5e4, n))
    return (torch.tensor(np.column_stack([temp, pres, feed, cat]), dtype=torch.float32),
            torch.tensor(heat, dtype=torch.float32))
