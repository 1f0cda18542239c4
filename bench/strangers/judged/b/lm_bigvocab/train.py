"""Word-level LM (GPU if there is one). Reports perplexity and top-5 hit rate on the held-out stream."""
import argparse
import math

import torch
from torch import nn, Tensor
from torch.nn import functional as F


def zipf_markov(n_tokens: int, vocab: int, seed: int, table_seed: int = 99) -> Tensor:
    """Each word has a handful of likely successors; the rest is Zipf noise."""
    tg = torch.Generator().manual_seed(table_seed)
    succ = torch.randint(0, vocab, (vocab, 6), generator=tg)
    base = 1.0 / torch.arange(1, vocab + 1)
    g = torch.Generator().manual_seed(seed)
    noise = torch.multinomial(base, n_tokens, replacement=True, generator=g)
    pick = torch.randint(0, 6, (n_tokens,), generator=g)
    keep = torch.rand(n_tokens, generator=g) < 0.7
    out = torch.empty(n_tokens, dtype=torch.long)
    w = 0
    for i in range(n_tokens):
        w = int(succ[w, pick[i]]) if keep[i] else int(noise[i])
        out[i] = w
    return out


def chunks(stream: Tensor, bptt: int):
    usable = (len(stream) - 1) // bptt * bptt
    return stream[:usable].view(-1, bptt), stream[1:usable + 1].view(-1, bptt)


class CausalConvLM(nn.Module):
    def __init__(self, vocab: int, dim: int, depth: int = 2, kernel: int = 3, p: float = 0.1):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 2 * dim, kernel) for _ in range(depth))
        self.k, self.drop, self.bias = kernel, nn.Dropout(p), nn.Parameter(torch.zeros(vocab))

    def forward(self, ids: Tensor) -> Tensor:
        h = self.drop(self.tok(ids)).transpose(1, 2)
        for conv in self.convs:
            h = h + self.drop(F.glu(conv(F.pad(h, (self.k - 1, 0))), dim=1))
        return h.transpose(1, 2) @ self.tok.weight.T + self.bias


def evaluate(lm: nn.Module, xs: Tensor, ys: Tensor, batch: int, device) -> dict[str, float]:
    lm.eval()
    logits, gold = [], []
    with torch.inference_mode():
        for x, y in zip(xs.split(batch), ys.split(batch)):
            logits.append(lm(x.to(device)))
            gold.append(y.to(device))
    logits = torch.cat(logits).flatten(0, 1)
    gold = torch.cat(gold).flatten()
    nll = F.cross_entropy(logits, gold).item()
    hit5 = (logits.topk(5, dim=-1).indices == gold[:, None]).any(-1).float().mean().item()
    return {"nll": nll, "ppl": math.exp(nll), "hit@5": hit5}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--vocab", type=int, default=1000, help="50k for the full corpus")
    ap.add_argument("--dim", type=int, default=48)
    ap.add_argument("--bptt", type=int, default=32)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--lr", type=float, default=4e-3)
    a = ap.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    xs, ys = chunks(zipf_markov(20_000, a.vocab, seed=1), a.bptt)
    hx, hy = chunks(zipf_markov(4_000, a.vocab, seed=2), a.bptt)
    lm = CausalConvLM(a.vocab, a.dim).to(device)
    nn.init.normal_(lm.tok.weight, std=0.05)
    opt = torch.optim.AdamW(lm.parameters(), lr=a.lr, betas=(0.9, 0.98))
    for epoch in range(a.epochs):
        lm.train()
        for rows in torch.randperm(len(xs)).split(a.batch):
            opt.zero_grad(set_to_none=True)
            z = lm(xs[rows].to(device))
            loss = F.cross_entropy(z.flatten(0, 1), ys[rows].to(device).flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
            opt.step()
        print(epoch, {k: round(v, 3) for k, v in evaluate(lm, hx, hy, a.batch, device).items()})


if __name__ == "__main__":
    main()
