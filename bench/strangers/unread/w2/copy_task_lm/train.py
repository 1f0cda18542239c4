"""Small causal LM in bfloat16 with float32 master weights kept by hand."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, N, DIM = 20, 6, 64
SEP, EOS = 18, 19


class Block(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.h = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(2 * N + 2, DIM)
        self.blocks = nn.Sequential(Block(DIM), Block(DIM))
        self.norm = nn.LayerNorm(DIM)
        for table in (self.tok, self.pos):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, ids):
        h = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        return F.linear(self.norm(self.blocks(h)), self.tok.weight)


class MasterWeights:
    """Optimizes float32 copies and writes them back to the low-precision working model."""

    def __init__(self, model, make_optimizer):
        self.work = list(model.parameters())
        self.master = [p.detach().clone().float().requires_grad_(True) for p in self.work]
        self.optimizer = make_optimizer(self.master)

    def step(self, max_norm):
        for m, w in zip(self.master, self.work):
            m.grad = w.grad.float()
            w.grad = None
        nn.utils.clip_grad_norm_(self.master, max_norm)
        self.optimizer.step()
        with torch.no_grad():
            for m, w in zip(self.master, self.work):
                w.copy_(m)


def batch(n, gen):
    s = torch.randint(0, 18, (n, N), generator=gen)
    ids = torch.cat([s, torch.full((n, 1), SEP), s, torch.full((n, 1), EOS)], 1)
    labels = ids.clone()
    labels[:, : N + 1] = -100
    return ids, labels


def loss_of(model, ids, labels):
    logits = model(ids)[:, :-1].float()
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    val = batch(128, torch.Generator().manual_seed(2))
    model = LM()
    weights = MasterWeights(model, lambda ps: torch.optim.AdamW(ps, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01))
    model.to(torch.bfloat16)
    for step in range(1, 301):
        model.train()
        loss = loss_of(model, *batch(48, gen))
        loss.backward()
        weights.step(max_norm=1.0)
        if step % 60 == 0:
            model.eval()
            with torch.no_grad():
                print(f"step {step} loss {loss.item():.4f} val {loss_of(model, *val).item():.4f}")


if __name__ == "__main__":
    main()
