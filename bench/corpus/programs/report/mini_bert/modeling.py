import math

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads, max_len, dropout):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)
        # one bias per head and relative distance (as in T5, without buckets)
        self.rel_bias = nn.Parameter(torch.randn(n_heads, 2 * max_len - 1))
        pos = torch.arange(max_len)
        self.register_buffer("rel_index", pos[None, :] - pos[:, None] + max_len - 1, persistent=False)

    def forward(self, x, pad_mask):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, C // self.n_heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        att = att + self.rel_bias[:, self.rel_index[:T, :T]]
        # pad_mask: (B, T), True where the token is padding -> nobody may look there
        att = att.masked_fill(pad_mask[:, None, None, :], float("-inf"))
        att = self.dropout(att.softmax(dim=-1))
        out = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(out)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, max_len, dropout):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = SelfAttention(d_model, n_heads, max_len, dropout)
        self.ln2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, pad_mask):
        x = x + self.dropout(self.attn(self.ln1(x), pad_mask))
        return x + self.dropout(self.ff(self.ln2(x)))


class MiniBert(nn.Module):
    def __init__(self, vocab_size, max_len, d_model, n_heads, n_layers, d_ff, dropout, pad_id):
        super().__init__()
        self.pad_id = pad_id
        self.tok = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, max_len, dropout) for _ in range(n_layers))
        self.ln = nn.LayerNorm(d_model)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.05)
            nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Embedding):
            nn.init.normal_(m.weight, std=0.2)
            if m.padding_idx is not None:
                m.weight.data[m.padding_idx].zero_()

    def forward(self, ids):
        pad_mask = ids == self.pad_id
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x, pad_mask)
        return F.linear(self.ln(x), self.tok.weight, self.bias)  # tied with the input embedding
