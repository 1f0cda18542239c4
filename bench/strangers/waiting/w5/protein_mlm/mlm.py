import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

AMINO = "ACDEFGHIKLMNPQRSTVWY"
PAD, CLS, MASK = 0, 1, 2
VOCAB = {a: i + 3 for i, a in enumerate(AMINO)}
N_TOKENS = len(VOCAB) + 3
MAXLEN = 50


def fake_fasta(n):
    """sequences with a repeating motif, so there is something to learn"""
    seqs = []
    for _ in range(n):
        motif = [random.choice(AMINO) for _ in range(random.randint(3, 5))]
        length = random.randint(20, MAXLEN - 1)
        seqs.append("".join((motif * MAXLEN)[:length]))
    return seqs


def tokenize(seqs):
    out = torch.full((len(seqs), MAXLEN), PAD)
    for i, s in enumerate(seqs):
        ids = [CLS] + [VOCAB[a] for a in s]
        out[i, :len(ids)] = torch.tensor(ids)
    return out


def corrupt(ids, p=0.15):
    """BERT recipe: 80% mask, 10% random residue, 10% unchanged."""
    labels = ids.clone()
    inputs = ids.clone()
    pick = (torch.rand(ids.shape) < p) & (ids > MASK)
    r = torch.rand(ids.shape)
    inputs[pick & (r < 0.8)] = MASK
    swap = pick & (r >= 0.8) & (r < 0.9)
    inputs[swap] = torch.randint(3, N_TOKENS, (int(swap.sum()),))
    labels[labels != MASK] = -100
    return inputs, labels


class ProteinBert(nn.Module):
    def __init__(self, d=64, heads=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(N_TOKENS, d, padding_idx=PAD)
        pos = torch.arange(MAXLEN).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(MAXLEN, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)
        self.register_buffer("pe", pe)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(d, N_TOKENS)

    def forward(self, x):
        h = self.emb(x) + self.pe[: x.size(1)]
        return self.out(self.enc(h, src_key_padding_mask=x == PAD))


def main():
    random.seed(5)
    torch.manual_seed(5)
    data = tokenize(fake_fasta(1500))
    model = ProteinBert()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))
    step = 0
    for epoch in range(3):
        for idx in torch.randperm(len(data)).split(64):
            x, y = corrupt(data[idx])
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            warmup.step()
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} mlm loss {loss.item():.4f}")
            step += 1


if __name__ == "__main__":
    main()
