import numpy as np
import torch
from torch.utils.data import Dataset

# codes in the survey files: 1 dry, 2 flooded, 3 permanent water, 0 not surveyed
IGNORE = 255


def survey_tile(rng, size=32):
    """SAR + elevation tile as (row, col, band) in float64, codes as uint8."""
    yy, xx = np.mgrid[0:size, 0:size] / size
    a, b = rng.uniform(-1, 1, 2)
    elev = a * xx + b * yy + 0.2 * np.sin(6 * xx + rng.uniform(0, 6))
    codes = np.where(elev < np.quantile(elev, 0.2), 3, np.where(elev < np.quantile(elev, 0.45), 2, 1))
    sar = np.select([codes == 3, codes == 2], [-18.0, -14.0], -8.0) + rng.normal(0, 1.5, elev.shape)
    codes = np.where(rng.random(codes.shape) < 0.1, 0, codes)
    return np.stack([sar, elev], axis=-1), codes.astype(np.uint8)


class FloodTiles(Dataset):
    MEAN = np.array([-11.0, 0.0])
    STD = np.array([4.5, 0.6])

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.tiles = [survey_tile(rng) for _ in range(n)]

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        bands, codes = self.tiles[i]
        x = torch.from_numpy((bands - self.MEAN) / self.STD).permute(2, 0, 1).float()
        # uint8: 0 - 1 wraps around to 255
        return x, torch.from_numpy(codes - np.uint8(1)).long()
