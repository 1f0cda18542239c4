"""Loading and balancing of the cohort table."""
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


def load_cohort(seed):
    x, y = make_classification(n_samples=1500, n_features=24, n_informative=6, n_redundant=4,
                               weights=[0.93, 0.07], flip_y=0.02, class_sep=0.6, random_state=seed)
    return x.astype(np.float32), y.astype(np.int64)


def balance(x, y, seed):
    """Random oversampling of the positive cases up to the number of controls."""
    rng = np.random.default_rng(seed)
    pos, neg = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    extra = rng.choice(pos, size=len(neg) - len(pos), replace=True)
    order = rng.permutation(np.concatenate([pos, neg, extra]))
    return x[order], y[order]


def get_splits(cfg):
    x, y = load_cohort(cfg["seed"])
    if cfg["balance"]:
        x, y = balance(x, y, cfg["seed"])
    x_tr, x_te, y_tr, y_te = train_test_split(
        x, y, test_size=cfg["test_size"], stratify=y, random_state=cfg["seed"])
    scaler = StandardScaler().fit(x_tr)
    return (scaler.transform(x_tr), y_tr), (scaler.transform(x_te), y_te)
