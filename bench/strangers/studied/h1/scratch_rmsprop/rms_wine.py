# Exercise 4: implement RMSprop and momentum yourself and train an MLP on the wine data
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler


class MyOptimizer:
    def __init__(self, params, lr):
        self.params = list(params)
        self.lr = lr
        self.t = 0

    def zero_grad(self):
        for p in self.params:
            grad = p.grad
            if grad is not None:
                grad = torch.zeros_like(grad)

    def step(self):
        self.t += 1
        with torch.no_grad():
            for i, p in enumerate(self.params):
                if p.grad is not None:
                    p -= self.lr * self.direction(i, p.grad)

    def direction(self, i, g):
        raise NotImplementedError


class MyMomentum(MyOptimizer):
    def __init__(self, params, lr, beta=0.9):
        super().__init__(params, lr)
        self.beta = beta
        self.v = [torch.zeros_like(p) for p in self.params]

    def direction(self, i, g):
        self.v[i] = self.beta * self.v[i] + (1 - self.beta) * g
        return self.v[i]


class MyRMSprop(MyOptimizer):
    def __init__(self, params, lr, rho=0.9, eps=1e-8):
        super().__init__(params, lr)
        self.rho, self.eps = rho, eps
        self.s = [torch.zeros_like(p) for p in self.params]

    def direction(self, i, g):
        self.s[i] = self.rho * self.s[i] + (1 - self.rho) * g * g
        return g / (self.s[i].sqrt() + self.eps)


data = load_wine()
X = StandardScaler().fit_transform(data.data).astype(np.float32)
perm = np.random.RandomState(0).permutation(len(X))
X, Y = torch.from_numpy(X[perm]), torch.from_numpy(data.target[perm])
X = X + 1.2 * torch.randn(X.shape, generator=torch.Generator().manual_seed(0))
X_train, Y_train, X_test, Y_test = X[:120], Y[:120], X[120:], Y[120:]


def experiment(name, make_opt, epochs=40, batch=20):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 3))
    opt = make_opt(net.parameters())
    lossf = nn.CrossEntropyLoss()
    for ep in range(epochs):
        order = torch.randperm(len(X_train))
        tot = 0
        for k in range(0, len(order), batch):
            b = order[k:k + batch]
            opt.zero_grad()
            loss = lossf(net(X_train[b]), Y_train[b])
            loss.backward()
            opt.step()
            tot += loss.item()
        if ep % 10 == 9:
            with torch.no_grad():
                acc = (net(X_test).argmax(1) == Y_test).float().mean()
            print(f"{name:9s} epoch {ep + 1:3d} loss {tot / 6:.4f} test acc {acc:.3f}")


experiment("momentum", lambda p: MyMomentum(p, lr=0.3))
experiment("rmsprop", lambda p: MyRMSprop(p, lr=0.01))
