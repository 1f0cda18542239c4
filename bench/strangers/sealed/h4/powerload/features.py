import math

import numpy as np

START = 1_700_006_400  # first hour of the record, unix time


def hourly_load(hours, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    temp = 12 + 9 * np.sin(2 * math.pi * t / (24 * 90)) + 4 * np.sin(2 * math.pi * t / 24) + rng.normal(0, 1.5, hours)
    load = (4 + 1.2 * np.sin(2 * math.pi * (t - 7) / 24) + 0.06 * np.abs(temp - 16)
            + rng.normal(0, 0.15, hours))
    return START + 3600 * t, temp, load


def zscore(a, fit_part):
    return (a - fit_part.mean(0)) / fit_part.std(0)


def assemble(stamp, temp, load, lags, fit_until):
    rows = np.arange(lags, len(load))
    history = np.stack([load[rows - k] for k in range(1, lags + 1)], axis=1)
    weather = np.stack([temp[rows], np.abs(temp[rows] - 16)], axis=1)
    numeric = np.concatenate([history, weather], axis=1)
    fit_rows = rows < fit_until
    numeric = zscore(numeric, numeric[fit_rows])
    # the hour itself, so that the net can learn the daily pattern
    x = np.concatenate([numeric, stamp[rows][:, None]], axis=1)
    y = zscore(load[rows], load[rows][fit_rows])
    return x.astype(np.float32), y.astype(np.float32), fit_rows
