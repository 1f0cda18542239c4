# handwritten digits, 2 layer net. translated from my numpy backprop assignment into torch
import numpy as np
import torch
from sklearn.datasets import load_digits

np.random.seed(0)
torch.manual_seed(0)

X, t = load_digits(return_X_y=True)
X = X / 16.0

# the grader wants the same number of test images for every digit: first 30 of each class
test_idx = np.concatenate([np.where(t == k)[0][:30] for k in range(10)])
train_idx = np.concatenate([np.where(t == k)[0][30:] for k in range(10)])
Xtr = torch.tensor(X[train_idx], dtype=torch.float32)
ttr = torch.tensor(t[train_idx])
Xte = torch.tensor(X[test_idx], dtype=torch.float32)
tte = torch.tensor(t[test_idx])
print(Xtr.shape, Xte.shape)

H = 64
W1 = (torch.randn(64, H) * np.sqrt(2 / 64)).requires_grad_()
b1 = torch.zeros(H, requires_grad=True)
W2 = (torch.randn(H, 10) * np.sqrt(1 / H)).requires_grad_()
b2 = torch.zeros(10, requires_grad=True)
params = [W1, b1, W2, b2]


def forward(x):
    h = torch.relu(x @ W1 + b1)
    return h @ W2 + b2


def accuracy(x, y):
    with torch.no_grad():
        return (forward(x).argmax(1) == y).float().mean().item()


lr, bs, epochs = 0.1, 50, 12
opt = torch.optim.SGD(params, lr=lr, momentum=0.9)
n = len(Xtr)

for epoch in range(epochs):
    perm = torch.randperm(n)
    total = 0.0
    for i in range(0, len(perm), bs):
        xb, yb = Xtr[i:i + bs], ttr[i:i + bs]
        loss = torch.nn.functional.cross_entropy(forward(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
    print("epoch %2d  loss %.3f  train acc %.3f  test acc %.3f"
          % (epoch, total / n, accuracy(Xtr, ttr), accuracy(Xte, tte)))
