"""scikit-learn style estimators on top of torch, same constructor arguments as the originals."""
import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn


class TorchMLPClassifier(ClassifierMixin, BaseEstimator):
    """`C` is the inverse regularisation strength, as in LogisticRegression and SVC."""

    def __init__(self, hidden=(32,), C=1.0, lr=0.05, max_epochs=15, batch_size=50, random_state=0):
        self.hidden = hidden
        self.C = C
        self.lr = lr
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def _network(self, n_in, n_out):
        layers = []
        for h in self.hidden:
            layers += [nn.Linear(n_in, h), nn.ReLU()]
            n_in = h
        return nn.Sequential(*layers, nn.Linear(n_in, n_out))

    def fit(self, X, y):
        torch.manual_seed(self.random_state)
        self.classes_, target = np.unique(y, return_inverse=True)
        X = torch.as_tensor(X, dtype=torch.float32)
        target = torch.as_tensor(target)
        self.net_ = self._network(X.shape[1], len(self.classes_))
        optimizer = torch.optim.SGD(self.net_.parameters(), lr=self.lr, momentum=0.9, weight_decay=1.0 / self.C)
        loss_fn = nn.CrossEntropyLoss()
        self.loss_curve_ = []
        for _ in range(self.max_epochs):
            total = 0.0
            for idx in torch.randperm(len(X)).split(self.batch_size):
                optimizer.zero_grad()
                loss = loss_fn(self.net_(X[idx]), target[idx])
                loss.backward()
                optimizer.step()
                total += loss.item() * len(idx)
            self.loss_curve_.append(total / len(X))
        return self

    def predict_proba(self, X):
        with torch.no_grad():
            return self.net_(torch.as_tensor(X, dtype=torch.float32)).softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]
