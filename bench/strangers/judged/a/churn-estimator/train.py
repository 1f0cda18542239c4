"""scikit-learn compatible MLP so that it can be put into pipelines and grid searches."""
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


class TorchMLPClassifier(ClassifierMixin, BaseEstimator):
    """Binary classifier. `predict_proba` follows the scikit-learn convention (two columns)."""

    def __init__(self, hidden=(32, 16), lr=3e-3, max_iter=25, batch_size=32, alpha=1e-4, random_state=None, verbose=0):
        self.hidden = hidden
        self.lr = lr
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.alpha = alpha
        self.random_state = random_state
        self.verbose = verbose

    def _make_net(self, n_features):
        sizes, layers = [n_features, *self.hidden], []
        for a, b in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise ValueError("TorchMLPClassifier is for two classes")
        if self.random_state is not None:
            torch.manual_seed(self.random_state)
        X = torch.as_tensor(X, dtype=torch.float32)
        t = torch.as_tensor(y == self.classes_[1], dtype=torch.float32).unsqueeze(1)

        self.net_ = self._make_net(X.shape[1])
        opt = torch.optim.AdamW(self.net_.parameters(), lr=self.lr, weight_decay=self.alpha)
        self.loss_curve_ = []
        for it in range(self.max_iter):
            self.net_.train()
            epoch = 0.0
            for idx in torch.randperm(len(X)).split(self.batch_size):
                opt.zero_grad()
                loss = F.cross_entropy(self.net_(X[idx]), t[idx])
                loss.backward()
                opt.step()
                epoch += loss.item() * len(idx)
            self.loss_curve_.append(epoch / len(X))
            if self.verbose and it % self.verbose == 0:
                print(f"iteration {it}, loss = {self.loss_curve_[-1]:.6f}")
        return self

    @torch.no_grad()
    def decision_function(self, X):
        self.net_.eval()
        return self.net_(torch.as_tensor(X, dtype=torch.float32)).squeeze(1).numpy()

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    pipe = make_pipeline(StandardScaler(), TorchMLPClassifier(random_state=0, verbose=5))
    pipe.fit(X_tr, y_tr)
    print("accuracy", round(accuracy_score(y_te, pipe.predict(X_te)), 3))
    print("ROC AUC ", round(roc_auc_score(y_te, pipe.predict_proba(X_te)[:, 1]), 3))


if __name__ == "__main__":
    main()
