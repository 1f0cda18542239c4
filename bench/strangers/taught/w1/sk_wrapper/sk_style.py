"""A scikit-learn flavoured wrapper so that I can swap MLPClassifier for torch."""
import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


class TorchMLPClassifier(ClassifierMixin, BaseEstimator):
    """alpha: strength of the L2 penalty, as in sklearn's MLPClassifier / Ridge."""

    def __init__(self, hidden_layer_sizes=(64, 32), alpha=1.0, learning_rate_init=1e-2, batch_size=64,
                 max_iter=25, random_state=0, verbose=False):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.alpha = alpha
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def _build(self, n_in, n_out):
        layers, prev = [], n_in
        for h in self.hidden_layer_sizes:
            layers += [nn.Linear(prev, h), nn.ReLU()]
            prev = h
        return nn.Sequential(*layers, nn.Linear(prev, n_out))

    def fit(self, X, y):
        torch.manual_seed(self.random_state)
        self.classes_, y = np.unique(y, return_inverse=True)
        X = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        y = torch.as_tensor(y)
        self.net_ = self._build(X.shape[1], len(self.classes_))
        opt = torch.optim.Adam(self.net_.parameters(), lr=self.learning_rate_init)
        ce = nn.CrossEntropyLoss()
        self.loss_curve_ = []
        for it in range(self.max_iter):
            self.net_.train()
            order = torch.randperm(len(X))
            epoch_loss = 0.0
            for idx in order.split(self.batch_size):
                data_loss = ce(self.net_(X[idx]), y[idx])
                penalty = sum((p ** 2).sum() for n, p in self.net_.named_parameters() if n.endswith("weight"))
                loss = data_loss + 0.5 * self.alpha * penalty
                opt.zero_grad()
                loss.backward()
                opt.step()
                epoch_loss += data_loss.item() * len(idx)
            self.loss_curve_.append(epoch_loss / len(X))
            if self.verbose:
                print(f"Iteration {it + 1}, loss = {self.loss_curve_[-1]:.6f}")
        return self

    @torch.no_grad()
    def predict_proba(self, X):
        self.net_.eval()
        X = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        return self.net_(X).softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


if __name__ == "__main__":
    X, y = load_breast_cancer(return_X_y=True)
    scores = []
    for tr, te in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        clf = make_pipeline(StandardScaler(), TorchMLPClassifier())
        clf.fit(X[tr], y[tr])
        scores.append(clf.score(X[te], y[te]))
        print("fold accuracy %.3f, final data loss %.4f, mean |w| %.5f" % (
            scores[-1], clf[-1].loss_curve_[-1],
            np.mean([p.abs().mean().item() for p in clf[-1].net_.parameters() if p.ndim > 1])))
    print("mean accuracy", np.mean(scores))
