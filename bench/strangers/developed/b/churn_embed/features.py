"""Feature table for the churn model: numeric usage columns + encoded categoricals."""
import numpy as np


def load_raw(cfg, seed):
    """Stand-in for the warehouse export. Returns a dict of columns."""
    g = np.random.default_rng(seed)
    n = cfg.n_rows
    region = g.integers(0, cfg.n_regions, n)
    plan = g.integers(0, cfg.n_plans, n)
    minutes = g.gamma(2.0, 90.0, n)
    tickets = g.poisson(1.2, n).astype(float)
    tenure = g.integers(1, 72, n).astype(float)
    score = 0.5 * tickets - 0.03 * tenure + 0.2 * (plan == 2) - 0.002 * minutes + g.normal(0, 1, n)
    churn = (score > np.quantile(score, 0.7)).astype(np.int64)
    return dict(region=region, plan=plan, minutes=minutes, tickets=tickets, tenure=tenure, churn=churn)


class SmoothedMeanEncoder:
    """category -> (sum of target + m * prior) / (count + m)"""

    def __init__(self, m):
        self.m = m
        self.table, self.prior = {}, 0.0

    def fit(self, column, target):
        self.prior = float(target.mean())
        for c in np.unique(column):
            hit = target[column == c]
            self.table[int(c)] = (hit.sum() + self.m * self.prior) / (len(hit) + self.m)
        return self

    def transform(self, column):
        return np.array([self.table.get(int(c), self.prior) for c in column])


class NumericScaler:
    def fit(self, x):
        self.mu, self.sd = x.mean(0), x.std(0) + 1e-8
        return self

    def transform(self, x):
        return (x - self.mu) / self.sd


def build_table(cfg, seed):
    cols = load_raw(cfg, seed)
    y = cols["churn"]
    encoded = []
    for name in ("region", "plan"):
        enc = SmoothedMeanEncoder(cfg.smoothing).fit(cols[name], y)
        encoded.append(enc.transform(cols[name]))
    numeric = np.stack([np.log1p(cols["minutes"]), cols["tickets"], cols["tenure"]], 1)
    return np.concatenate([numeric, np.stack(encoded, 1)], 1).astype(np.float32), y
