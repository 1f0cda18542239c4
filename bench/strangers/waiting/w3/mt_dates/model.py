import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, pad, d=64):
        super().__init__()
        self.pad = pad
        self.src_emb = nn.Embedding(n_src, d, padding_idx=pad)
        self.tgt_emb = nn.Embedding(n_tgt, d, padding_idx=pad)
        self.enc = nn.GRU(d, d, batch_first=True)
        self.dec = nn.GRU(d, d, batch_first=True)
        self.att = nn.Linear(d, d, bias=False)
        self.out = nn.Linear(2 * d, n_tgt)

    def encode(self, src):
        mask = src == self.pad
        lens = (~mask).sum(1).cpu()
        packed = pack_padded_sequence(self.src_emb(src), lens, batch_first=True, enforce_sorted=False)
        h, s = self.enc(packed)
        h, _ = pad_packed_sequence(h, batch_first=True)
        return h, s, mask

    def decode(self, tgt_in, mem, state, mask):
        q, state = self.dec(self.tgt_emb(tgt_in), state)
        score = self.att(q) @ mem.transpose(1, 2)
        score = score.masked_fill(mask[:, None], float("-inf"))
        ctx = score.softmax(-1) @ mem
        return self.out(torch.cat([q, ctx], -1)), state

    def forward(self, src, tgt_in):
        mem, s, mask = self.encode(src)
        return self.decode(tgt_in, mem, s, mask)[0]
