import math

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(42)
CONTEXT, D, HEADS = 32, 32, 4


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads, p_drop):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads, self.p_drop = n_heads, p_drop
        self.to_qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, h):
        b, t, d = h.shape
        q, k, v = self.to_qkv(h).view(b, t, 3, self.n_heads, d // self.n_heads).permute(2, 0, 3, 1, 4)
        ctx = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p_drop, is_causal=True)
        return self.proj(ctx.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d_model, n_heads, p_drop):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, n_heads, p_drop)
        self.mlp = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(),
                                 nn.Linear(2 * d_model, d_model), nn.Dropout(0.05))

    def forward(self, h):
        h = h + self.attn(self.ln1(h))
        return h + self.mlp(self.ln2(h))


class TideFormer(nn.Module):
    def __init__(self, depth=2, p_drop=0.35):
        super().__init__()
        self.embed = nn.Linear(1, D)
        self.pos = nn.Parameter(0.02 * torch.randn(1, CONTEXT, D))
        self.blocks = nn.ModuleList([Block(D, HEADS, p_drop) for _ in range(depth)])
        self.norm = nn.LayerNorm(D)
        self.out = nn.Linear(D, 1)

    def forward(self, x):
        h = self.embed(x.unsqueeze(-1)) + self.pos[:, : x.size(1)]
        for blk in self.blocks:
            h = blk(h)
        return self.out(self.norm(h)).squeeze(-1)


def tide_series(n):
    hours = torch.arange(n, dtype=torch.float32)
    moon = torch.sin(2 * math.pi * hours / 12.42)
    sun = 0.45 * torch.sin(2 * math.pi * hours / 12.0 + 0.4)
    daily = 0.2 * torch.sin(2 * math.pi * hours / 24.0)
    return moon + sun + daily + 0.05 * torch.randn(n)


def windows(series):
    w = series.unfold(0, CONTEXT + 1, 1)
    return w[:, :-1].contiguous(), w[:, 1:].contiguous()


levels = tide_series(1500)
x_fit, y_fit = windows(levels[:1100])
x_chk, y_chk = windows(levels[1100:])

net = TideFormer()
opt = optim.Adam(net.parameters(), lr=3e-3)
sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)


def check():
    net.eval()
    with torch.no_grad():
        pred = net(x_chk)
    net.train()
    return F.mse_loss(pred[:, 8:], y_chk[:, 8:]).item()


for epoch in range(10):
    losses = []
    for idx in torch.randperm(len(x_fit)).split(32):
        opt.zero_grad()
        loss = F.mse_loss(net(x_fit[idx]), y_fit[idx])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    sched.step()
    print(f"epoch {epoch}: fit mse {sum(losses) / len(losses):.4f}, check mse {check():.4f}")

print("two readings of the final check:", round(check(), 5), round(check(), 5))
