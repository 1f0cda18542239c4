"""Masked-token pretraining on amino-acid sequences."""
import random

import torch
import torch.nn as nn

from masking import CLS, N_SPECIAL, PAD, SEP, mask_tokens

AMINO = "ACDEFGHIKLMNPQRSTVWY"
VOCAB_SIZE = len(AMINO) + N_SPECIAL
MOTIFS = ["GKSTLL", "HEXXH".replace("X", "A"), "CPYCRV", "WDPNRT"]


def random_protein(rng, length=40):
    s = ""
    while len(s) < length:
        s += rng.choice(MOTIFS) if rng.random() < 0.8 else rng.choice(AMINO)
    return s[:length - rng.randrange(8)]


def encode(seqs):
    width = max(map(len, seqs)) + 2
    out = torch.full((len(seqs), width), PAD)
    for r, s in enumerate(seqs):
        ids = [CLS] + [N_SPECIAL + AMINO.index(c) for c in s] + [SEP]
        out[r, :len(ids)] = torch.tensor(ids)
    return out


class ProteinEncoder(nn.Module):
    def __init__(self, d=64, heads=4, layers=2, max_len=64):
        super().__init__()
        self.tok = nn.Embedding(VOCAB_SIZE, d, padding_idx=PAD)
        self.pos = nn.Parameter(torch.randn(1, max_len, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, VOCAB_SIZE)

    def forward(self, ids):
        x = self.tok(ids) + self.pos[:, :ids.size(1)]
        x = self.encoder(x, src_key_padding_mask=ids == PAD)
        return self.lm_head(self.norm(x))


def main(steps=200, bs=32):
    torch.manual_seed(0)
    rng = random.Random(0)
    model = ProteinEncoder()
    loss_fct = nn.CrossEntropyLoss()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, steps + 1):
        batch = encode([random_protein(rng) for _ in range(bs)])
        inputs, labels = mask_tokens(batch, VOCAB_SIZE)
        logits = model(inputs)
        loss = loss_fct(logits.view(-1, VOCAB_SIZE), labels.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 0:
            print(f"step {step} mlm loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
