import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import TensorDataset

from learner import LwFLearner

torch.manual_seed(1993)
SPLITS = [(0, 4), (4, 7), (7, 10)]

X, y = load_digits(return_X_y=True)
X = (X / 16.0).astype("float32")
Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.25, stratify=y, random_state=1993)
Xtr, Xte, ytr, yte = map(torch.from_numpy, (Xtr, Xte, ytr, yte))


def subset(X, y, lo, hi):
    m = (y >= lo) & (y < hi)
    return X[m], y[m]


learner = LwFLearner(first_classes=SPLITS[0][1])
for task, (lo, hi) in enumerate(SPLITS):
    learner.before_task(hi - lo)
    loss = learner.train_task(TensorDataset(*subset(Xtr, ytr, lo, hi)))
    new = learner.accuracy(*subset(Xte, yte, lo, hi))
    seen = learner.accuracy(*subset(Xte, yte, 0, hi))
    print(f"task {task}: classes {lo}-{hi - 1} loss {loss:.4f} new acc {new:.3f} all seen {seen:.3f}")
