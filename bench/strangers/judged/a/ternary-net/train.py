# ternary weights with a straight-through estimator. No nn.Module, no torch.optim: tensors and a
# hand-written Nesterov momentum, because I want to see every number.
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

g = torch.Generator().manual_seed(4)


class Ternary(torch.autograd.Function):
    """forward: {-s, 0, s};  backward: identity inside [-1, 1], nothing outside."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        thr = 0.7 * w.abs().mean()
        mask = w.abs() > thr
        s = w.abs()[mask].mean() if mask.any() else w.new_tensor(0.0)
        return s * torch.sign(w) * mask

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * (w.abs() <= 1)


tern = Ternary.apply

X, y = load_iris(return_X_y=True)
xa, xb, ya, yb = train_test_split(X, y, test_size=50, stratify=y, random_state=4)
mu, sd = xa.mean(0), xa.std(0)
xa, xb = (torch.tensor((v - mu) / sd, dtype=torch.float32) for v in (xa, xb))
ya, yb = torch.tensor(ya), torch.tensor(yb)

sizes = (4, 24, 3)
W = [(torch.randn(a, b, generator=g) * a ** -0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]
B = [torch.zeros(b, requires_grad=True) for b in sizes[1:]]
theta = W + B
vel = [torch.zeros_like(p) for p in theta]


def f(x):
    h = torch.relu(x @ tern(W[0]) + B[0])
    return h @ tern(W[1]) + B[1]


def nll(logits, t):
    return (torch.logsumexp(logits, 1) - logits.gather(1, t[:, None]).squeeze(1)).mean()


lr, m = 0.05, 0.9
for epoch in range(60):
    for i in torch.randperm(len(xa), generator=g).split(20):
        loss = nll(f(xa[i]), ya[i])
        grads = torch.autograd.grad(loss, theta)
        with torch.no_grad():
            for p, v, d in zip(theta, vel, grads):
                v.mul_(m).add_(d)
                p -= lr * (d + m * v)
            for w in W:
                w.clamp_(-1, 1)
    if epoch % 15 == 14:
        with torch.no_grad():
            acc = (f(xb).argmax(1) == yb).float().mean().item()
        zero = torch.cat([(tern(w) == 0).flatten() for w in W]).float().mean().item()
        print(f"{epoch + 1:3d}  nll {loss.item():.3f}  test {acc:.2f}  zeros {zero:.2f}")
    lr *= 0.98
