# two-layer net "by hand": parameters are plain tensors, update rule written out, as in my old numpy scripts
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
X, y = load_iris(return_X_y=True)
Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
mu, sd = Xtr.mean(0), Xtr.std(0)
Xtr = torch.tensor((Xtr - mu) / sd, dtype=torch.float32)
Xte = torch.tensor((Xte - mu) / sd, dtype=torch.float32)
ytr, yte = torch.tensor(ytr), torch.tensor(yte)

H = 16
W1 = (torch.randn(4, H) * (2 / 4) ** 0.5).requires_grad_()
b1 = torch.zeros(H, requires_grad=True)
W2 = torch.zeros(H, 3, requires_grad=True)      # zero output layer: uniform prediction at the start
b2 = torch.zeros(3, requires_grad=True)
params = [W1, b1, W2, b2]
velocity = [torch.zeros_like(p) for p in params]

lr, mom, lam = 0.1, 0.9, 1e-3


def forward(x):
    return (x @ W1 + b1).clamp(min=0) @ W2 + b2


def cross_entropy(logits, t):
    logp = logits - logits.logsumexp(1, keepdim=True)
    return -logp[torch.arange(len(t)), t].mean()


history = []
for epoch in range(60):
    if epoch in (30, 45):
        lr *= 0.3
    order = torch.randperm(len(Xtr))
    for k in range(0, len(order), 16):
        b = order[k:k + 16]
        loss = cross_entropy(forward(Xtr[b]), ytr[b]) + lam * (W1.pow(2).sum() + W2.pow(2).sum())
        grads = torch.autograd.grad(loss, params)
        with torch.no_grad():
            for p, v, g in zip(params, velocity, grads):
                v.mul_(mom).sub_(lr * g)
                p += v
    history.append(loss.detach().numpy().item())
    if epoch % 15 == 14:
        with torch.no_grad():
            acc = (forward(Xte).argmax(1) == yte).float().mean().item()
        print(f"{epoch + 1:3d} loss {history[-1]:.4f} test accuracy {acc:.3f}")
