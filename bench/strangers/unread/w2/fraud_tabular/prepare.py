import numpy as np
from sklearn.datasets import make_classification


def rebalance(X, y, rng):
    """Repeat the rare class until both are equally frequent."""
    rare = np.flatnonzero(y == 1)
    need = (y == 0).sum() - len(rare)
    extra = rng.choice(rare, size=need, replace=True)
    keep = np.concatenate([np.arange(len(y)), extra])
    rng.shuffle(keep)
    return X[keep], y[keep]


def clean(X):
    return np.sign(X) * np.log1p(np.abs(X))


def load_transactions(seed=0):
    X, y = make_classification(
        n_samples=3000, n_features=20, n_informative=6, n_redundant=4, weights=[0.94],
        flip_y=0.02, class_sep=0.6, random_state=seed,
    )
    rng = np.random.default_rng(seed)
    X, y = rebalance(clean(X), y, rng)
    return X.astype(np.float32), y.astype(np.float32)
