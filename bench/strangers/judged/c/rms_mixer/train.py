"""Token mixer on a copy/parity task. The normalisation is a hand-written autograd function so that only
the input and the inverse rms are kept for backward."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class _RMSNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, inv)
        return x * inv * weight

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, weight, inv = ctx.saved_tensors
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = g * weight * inv
        if ctx.needs_input_grad[1]:
            grad_w = (g * x * inv).flatten(0, -2).sum(0)
        return grad_x, grad_w, None


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return _RMSNormFn.apply(x, self.weight, self.eps)


class MixerBlock(nn.Module):
    def __init__(self, seq, dim):
        super().__init__()
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)
        self.tok = nn.Sequential(nn.Linear(seq, 2 * seq), nn.GELU(), nn.Linear(2 * seq, seq))
        self.chn = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chn(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, vocab, seq, dim=32, depth=2, classes=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*(MixerBlock(seq, dim) for _ in range(depth)))
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.emb(ids))).mean(1))


def batch_stream(n_batches, bs, seed, seq=10, vocab=12, classes=4):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n_batches):
        ids = torch.randint(0, vocab, (bs, seq), generator=g)
        yield ids, (ids == ids[:, :1]).sum(1).clamp(max=classes) - 1


def evaluate(net):
    net.eval()
    with torch.no_grad():
        res = torch.cat([(net(i).argmax(-1) == t) for i, t in batch_stream(8, 64, seed=999)])
    net.train()
    return res.float().mean().item()


torch.manual_seed(31)
net = Mixer(vocab=12, seq=10)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for step, (ids, target) in enumerate(batch_stream(300, 64, seed=1), 1):
    loss = F.cross_entropy(net(ids), target)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 75 == 0:
        print(step, f"loss {loss.item():.4f} held-out acc {evaluate(net):.3f}")
