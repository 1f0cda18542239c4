import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class MHSA(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        B, N, D = x.shape
        q, k, v = self.qkv(x).view(B, N, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        y = y.transpose(1, 2).contiguous().view(B, N, D)
        return self.out(y)


class ViT(nn.Module):
    def __init__(self, d=48, depth=2, heads=4, patch=2, classes=10):
        super().__init__()
        self.p = patch
        self.embed = nn.Linear(patch * patch, d)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(0.02 * torch.randn(1, 17, d))
        self.norm1 = nn.ModuleList(nn.LayerNorm(d) for _ in range(depth))
        self.norm2 = nn.ModuleList(nn.LayerNorm(d) for _ in range(depth))
        self.att = nn.ModuleList(MHSA(d, heads) for _ in range(depth))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(depth))
        self.head = nn.Linear(d, classes)

    def patchify(self, img):
        B, H, W = img.shape
        p = self.p
        x = img.view(B, H // p, p, W // p, p)
        return x.permute(0, 1, 3, 2, 4).reshape(B, (H // p) * (W // p), p * p)

    def forward(self, img):
        x = self.embed(self.patchify(img))
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        for n1, n2, a, m in zip(self.norm1, self.norm2, self.att, self.mlp):
            x = x + a(n1(x))
            x = x + m(n2(x))
        return self.head(x[:, 0])


def topk(logits, y, ks=(1, 3)):
    pred = logits.topk(max(ks), 1).indices.t()
    hit = pred.eq(y.view(1, -1).expand_as(pred))
    return [hit[:k].reshape(-1).float().sum().item() / len(y) for k in ks]


def main():
    torch.manual_seed(1)
    X, y = load_digits(return_X_y=True)
    # stored as (pixel, sample) in the old pipeline; splitting the last dim of the transposed array needs no copy
    cols = torch.tensor(X.T / 16.0, dtype=torch.float32)
    imgs = cols.t().unflatten(1, (8, 8)).contiguous()
    y = torch.tensor(y)
    perm = torch.randperm(len(y))
    tr, te = perm[:1400], perm[1400:]
    net = ViT()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=8 * 22)
    for epoch in range(8):
        net.train()
        for b in tr[torch.randperm(len(tr))].split(64):
            loss = F.cross_entropy(net(imgs[b]), y[b], label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        net.eval()
        with torch.no_grad():
            a1, a3 = topk(net(imgs[te]), y[te])
        print(f"epoch {epoch} loss {loss.item():.3f} top1 {a1:.3f} top3 {a3:.3f}")


if __name__ == "__main__":
    main()
