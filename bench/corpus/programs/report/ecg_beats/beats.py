import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES = ["N", "S", "V", "F"]          # normal, supraventricular, ventricular, fusion
PRIOR = [0.74, 0.10, 0.11, 0.05]
LENGTH = 96


def _bump(t, center, width, height):
    return height * np.exp(-0.5 * ((t - center) / width) ** 2)


def _beat(kind, rng):
    """One heartbeat as a sum of P, Q, R, S and T waves with random jitter."""
    t = np.linspace(0, 1, LENGTH)
    j = lambda s: rng.normal(0, s)
    shift = j(0.03)
    amp = 1.0 + j(0.12)
    p_h, p_c, r_w, r_h, s_h, t_h, t_c = 0.16, 0.22, 0.018, 1.0, -0.28, 0.32, 0.72
    if kind == 1:        # early beat: P wave late and inverted, shorter cycle
        p_h, p_c, t_c, r_h = -0.14, 0.28, 0.64, 0.92
    elif kind == 2:      # wide QRS without P, discordant T
        p_h, r_w, r_h, s_h, t_h = 0.0, 0.055, 0.95, -0.45, -0.30
    elif kind == 3:      # something between N and V
        p_h, r_w, r_h, s_h, t_h = 0.09, 0.036, 0.95, -0.35, 0.02
    r_c = 0.42 + shift
    sig = _bump(t, p_c + shift + j(0.008), 0.028, p_h * (1 + j(0.2)))
    sig += _bump(t, r_c - 0.045, 0.014, -0.12)
    sig += _bump(t, r_c, r_w * (1 + j(0.08)), r_h)
    sig += _bump(t, r_c + 0.055 + (r_w - 0.018), 0.018 + 0.3 * r_w, s_h)
    sig += _bump(t, t_c + shift + j(0.012), 0.06, t_h * (1 + j(0.15)))
    wander = 0.10 * np.sin(2 * np.pi * (rng.uniform(0.3, 1.0) * t + rng.random()))
    return amp * sig + wander + rng.normal(0, 0.06, LENGTH)


class BeatDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        y = rng.choice(len(CLASSES), size=n, p=PRIOR)
        x = np.stack([_beat(k, rng) for k in y]).astype(np.float32)
        x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        self.x = torch.from_numpy(x).unsqueeze(1)
        self.y = torch.from_numpy(y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def class_weights(self):
        counts = torch.bincount(self.y, minlength=len(CLASSES)).float()
        w = counts.sum() / (len(CLASSES) * counts)
        return w.sqrt()   # full inverse frequency makes the rare classes too noisy
