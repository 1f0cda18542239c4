import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler


def fold_arrays(k, seed):
    x, y = load_breast_cancer(return_X_y=True)
    splitter = StratifiedKFold(n_splits=k, shuffle=True, random_state=seed)
    for number, (a, b) in enumerate(splitter.split(x, y)):
        scaler = StandardScaler().fit(x[a])
        yield number, tuple(v.astype(np.float32) for v in (scaler.transform(x[a]), y[a], scaler.transform(x[b]), y[b]))
