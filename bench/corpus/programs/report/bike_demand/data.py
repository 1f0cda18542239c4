"""Synthetic hourly rental counts, shaped like the well known bike sharing table."""
import numpy as np
import torch
from torch.utils.data import TensorDataset

CATEGORICAL = {"season": 4, "hour": 24, "weekday": 7, "weather": 3, "station_area": 12}
NUMERIC = ["temp", "humidity", "windspeed"]


def generate_table(n_rows, seed):
    rng = np.random.default_rng(seed)
    cols = {name: rng.integers(0, size, n_rows) for name, size in CATEGORICAL.items()}
    cols["weather"] = rng.choice(3, n_rows, p=[0.65, 0.27, 0.08])

    season_temp = np.array([4.0, 14.0, 23.0, 12.0])
    cols["temp"] = season_temp[cols["season"]] + 4.0 * rng.standard_normal(n_rows)
    cols["humidity"] = np.clip(
        55 + 12 * cols["weather"] + 12 * rng.standard_normal(n_rows), 10, 100
    )
    cols["windspeed"] = rng.gamma(3.0, 4.0, n_rows)

    hour, working = cols["hour"], cols["weekday"] < 5
    commute = np.exp(-0.5 * ((hour - 8) / 1.3) ** 2) + 1.2 * np.exp(-0.5 * ((hour - 17.5) / 1.8) ** 2)
    leisure = 1.1 * np.exp(-0.5 * ((hour - 14) / 3.5) ** 2)
    base = 0.08 + np.where(working, commute + 0.25 * leisure, leisure)
    comfort = np.exp(-(((cols["temp"] - 22) / 16) ** 2))
    area = rng.uniform(0.4, 1.6, CATEGORICAL["station_area"])[cols["station_area"]]
    sky = np.array([1.0, 0.8, 0.35])[cols["weather"]]
    wind = 1.0 - 0.012 * np.clip(cols["windspeed"], 0, 40)
    mean = 320.0 * base * comfort * area * sky * wind + 2.0
    noise = rng.standard_normal(n_rows) * np.sqrt(mean) * 1.2
    # a few broken counters: that is why we train with Huber
    broken = rng.random(n_rows) < 0.01
    count = np.where(broken, mean * rng.uniform(0, 3, n_rows), mean + noise)
    cols["count"] = np.clip(np.round(count), 0, None)
    return cols


def build_datasets(n_rows, seed, valid_fraction=0.2):
    table = generate_table(n_rows, seed)
    cats = np.stack([table[c] for c in CATEGORICAL], axis=1).astype(np.int64)
    nums = np.stack([table[c] for c in NUMERIC], axis=1).astype(np.float32)
    target = np.log1p(table["count"]).astype(np.float32)

    order = np.random.default_rng(seed + 1).permutation(n_rows)
    n_valid = int(n_rows * valid_fraction)
    valid_idx, train_idx = order[:n_valid], order[n_valid:]

    # statistics from the training rows only
    mu, sd = nums[train_idx].mean(0), nums[train_idx].std(0)
    nums = (nums - mu) / sd

    def subset(idx):
        return TensorDataset(
            torch.from_numpy(cats[idx]), torch.from_numpy(nums[idx]), torch.from_numpy(target[idx])
        )

    return subset(train_idx), subset(valid_idx), float(target[train_idx].mean())
