import math
import random

import torch
from torch import nn
from torch.nn import functional as F

LANGS = {"en": ["the cat sat on the mat and saw the rat", "a man ran to the red van", "ten men met in the den"],
         "nl": ["de kat zat op de mat en zag de rat", "een man rende naar de rode bus", "tien mannen waren in de zaal"]}
ABC = " abcdefghijklmnopqrstuvwxyz"
CTX = 24


class Attn(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        split = lambda z: z.view(b, t, self.h, d // self.h).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x)), is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.attn, self.ln1, self.ln2 = Attn(d, h), nn.LayerNorm(d), nn.LayerNorm(d)
        self.up_proj, self.down_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.down_proj(F.gelu(self.up_proj(self.ln2(x))))


class CharLM(nn.Module):
    def __init__(self, d=48, h=4, n=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(len(ABC), d), nn.Embedding(CTX, d)
        self.blocks = nn.ModuleList(Block(d, h) for _ in range(n))
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, len(ABC))

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for b in self.blocks:
            x = b(x)
        return self.head(self.ln_f(x))


class LoRALinear(nn.Module):
    def __init__(self, lin, r=8, alpha=16):
        super().__init__()
        self.lin, self.scale = lin, alpha / r
        self.A = nn.Parameter(torch.randn(r, lin.in_features) / math.sqrt(lin.in_features))
        self.B = nn.Parameter(torch.zeros(lin.out_features, r))

    def forward(self, x):
        return self.lin(x) + (x @ self.A.T @ self.B.T) * self.scale


def inject(model, targets=("q_proj", "v_proj", "up_proj", "down_proj"), r=8):
    for p in model.parameters():
        p.requires_grad = False
    found = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear) and n.endswith(targets)]
    for name, lin in found:
        setattr(model, name, LoRALinear(lin, r))
    for p in model.head.parameters():
        p.requires_grad = True
    print(f"LoRA on {len(found)} layers")
    return model


def batch(lang, rng, n=32):
    text = " ".join(rng.choice(LANGS[lang]) for _ in range(n * 3))
    starts = [rng.randrange(len(text) - CTX - 1) for _ in range(n)]
    ids = torch.tensor([[ABC.index(c) for c in text[s:s + CTX + 1]] for s in starts])
    return ids[:, :-1], ids[:, 1:]


def train(model, lang, steps, lr, rng):
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for step in range(1, steps + 1):
        x, y = batch(lang, rng)
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"{lang} step {step} loss {loss.item():.4f}")


@torch.no_grad()
def ppl(model, lang, rng):
    x, y = batch(lang, rng, 128)
    return F.cross_entropy(model(x).transpose(1, 2), y).exp().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    rng = random.Random(0)
    lm = CharLM()
    train(lm, "en", 200, 3e-3, rng)
    print(f"ppl en {ppl(lm, 'en', rng):.2f} nl {ppl(lm, 'nl', rng):.2f}")
    train(inject(lm), "nl", 200, 3e-3, rng)
    print(f"ppl nl after LoRA {ppl(lm, 'nl', rng):.2f}")
