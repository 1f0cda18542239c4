"""Quantisation-aware training: weights on 3 bits, activations on 4, straight-through gradients."""
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn
from torch.autograd import Function
from torch.utils.data import DataLoader, TensorDataset


class RoundSTE(Function):
    """round() on a grid; outside of the grid the gradient is zero, inside it passes unchanged."""

    @staticmethod
    def forward(ctx, x, scale, lo, hi):
        q = x / scale
        ctx.save_for_backward((q >= lo) & (q <= hi))
        return torch.clamp(torch.round(q), lo, hi) * scale

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None, None


class QuantLinear(nn.Linear):
    def __init__(self, i, o, w_bits=3, a_bits=4):
        super().__init__(i, o)
        self.w_hi = 2 ** (w_bits - 1) - 1
        self.a_hi = 2 ** a_bits - 1
        self.register_buffer("a_max", torch.tensor(1.0))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.a_max.lerp_(x.abs().max(), 0.1)
        s_w = self.weight.detach().abs().amax(1, keepdim=True).clamp_min(1e-8) / self.w_hi
        w = RoundSTE.apply(self.weight, s_w, -self.w_hi, self.w_hi)
        x = RoundSTE.apply(x, self.a_max / self.a_hi, -self.a_hi, self.a_hi)
        return nn.functional.linear(x, w, self.bias)


class QuantNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l1, self.l2, self.l3 = QuantLinear(d, 48), QuantLinear(48, 24), nn.Linear(24, 1)
        self.n1, self.n2 = nn.BatchNorm1d(48), nn.BatchNorm1d(24)

    def forward(self, x):
        x = self.n1(self.l1(x)).relu()
        x = self.n2(self.l2(x)).relu()
        return self.l3(x).squeeze(1)


def main():
    torch.manual_seed(33)
    X, y = load_breast_cancer(return_X_y=True)
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.3, random_state=33, stratify=y)
    mu, sd = Xa.mean(0), Xa.std(0)
    as_set = lambda X, y: TensorDataset(torch.tensor((X - mu) / sd).float(), torch.tensor(y).float())
    train = DataLoader(as_set(Xa, ya), 32, shuffle=True, drop_last=True)
    test = DataLoader(as_set(Xb, yb), 200)

    net = QuantNet(X.shape[1])
    pos_weight = torch.tensor((ya == 0).sum() / (ya == 1).sum()).float()
    crit = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(10):
        net.train()
        tot = 0.0
        for x, t in train:
            opt.zero_grad()
            loss = crit(net(x), t)
            loss.backward()
            opt.step()
            tot += loss.item()
        net.eval()
        with torch.no_grad():
            hit = sum(((net(x) > 0) == t.bool()).sum().item() for x, t in test)
        if epoch % 3 == 0:
            print(f"epoch {epoch} loss {tot / len(train):.3f} test acc {hit / len(yb):.3f}")
    levels = {n: len(torch.unique(torch.round(m.weight / (m.weight.abs().amax(1, keepdim=True) / m.w_hi))))
              for n, m in net.named_modules() if isinstance(m, QuantLinear)}
    print("distinct weight levels:", levels)


if __name__ == "__main__":
    main()
