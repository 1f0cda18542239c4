"""Feature building for the churn model (categoricals -> smoothed churn rate, numerics -> z-score)."""
from dataclasses import dataclass, field

import numpy as np

REGIONS = [f"R{i:03d}" for i in range(220)]
PLANS = ["basic", "plus", "family", "business", "legacy"]


def simulate_customers(n: int, seed: int):
    rng = np.random.default_rng(seed)
    region = rng.choice(REGIONS, size=n)
    plan = rng.choice(PLANS, size=n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    tenure = rng.gamma(2.0, 12.0, size=n)
    spend = rng.lognormal(3.2, 0.5, size=n)
    calls = rng.poisson(1.4, size=n)
    score = -0.03 * tenure + 0.35 * calls + 0.9 * (plan == "legacy") - 0.4 * (plan == "family")
    churn = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)
    return {"region": region, "plan": plan, "tenure": tenure, "spend": spend, "calls": calls, "churn": churn}


@dataclass
class RateEncoder:
    """Replaces a category by its (smoothed) churn rate."""
    smoothing: float = 1.0
    table: dict = field(default_factory=dict)
    prior: float = 0.0

    def fit(self, values, y):
        self.prior = float(y.mean())
        for v in np.unique(values):
            hit = y[values == v]
            self.table[v] = (hit.sum() + self.smoothing * self.prior) / (len(hit) + self.smoothing)
        return self

    def transform(self, values):
        return np.array([self.table.get(v, self.prior) for v in values], dtype=np.float32)


@dataclass
class ZScore:
    mean: np.ndarray = None
    std: np.ndarray = None

    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0) + 1e-6
        return self

    def transform(self, x):
        return (x - self.mean) / self.std


def encode_categories(frame, columns=("region", "plan")):
    out = {k: v for k, v in frame.items() if k not in columns}
    for col in columns:
        out[col] = RateEncoder().fit(frame[col], frame["churn"]).transform(frame[col])
    return out


def to_matrix(frame):
    cols = ["tenure", "spend", "calls", "region", "plan"]
    return np.stack([np.asarray(frame[c], dtype=np.float32) for c in cols], axis=1)


def take(frame, rows):
    return {k: v[rows] for k, v in frame.items()}
