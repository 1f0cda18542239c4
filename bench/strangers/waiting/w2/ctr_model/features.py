import csv

import numpy as np

CATEGORICAL = ["user_segment", "ad_id", "site"]
NUMERIC = ["hour", "age_days", "price"]
CARDINALITY = {"user_segment": 12, "ad_id": 50, "site": 20}


# from last year's log
NUM_MEAN = np.array([11.5, 30.0, 20.0], dtype=np.float32)
NUM_STD = np.array([6.9, 30.0, 14.1], dtype=np.float32)


def scale_numeric(X):
    k = len(CATEGORICAL)
    X[:, k:] = (X[:, k:] - NUM_MEAN) / NUM_STD
    return X


def read_log(path):
    """csv with the columns of CATEGORICAL (already label-encoded), NUMERIC and click"""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    X = np.array([[float(r[c]) for c in CATEGORICAL + NUMERIC] for r in rows], dtype=np.float32)
    y = np.array([float(r["click"]) for r in rows], dtype=np.float32)
    return scale_numeric(X), y


def simulate_log(n, seed=0):
    rng = np.random.default_rng(seed)
    cats = np.stack([rng.integers(0, CARDINALITY[c], n) for c in CATEGORICAL], axis=1)
    nums = np.stack([rng.integers(0, 24, n), rng.exponential(30, n), rng.gamma(2.0, 10.0, n)], axis=1)
    aff = np.random.default_rng(42).normal(0, 1.2, (12, 50))
    logit = -1.0 + aff[cats[:, 0], cats[:, 1]] - 0.01 * nums[:, 2]
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.float32)
    X = np.concatenate([cats, nums], axis=1).astype(np.float32)
    return scale_numeric(X), y
