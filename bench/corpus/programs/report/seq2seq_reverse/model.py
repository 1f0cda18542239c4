import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid, pad_id):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=pad_id)
        self.gru = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hid, hid)

    def forward(self, src, src_len):
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(src), src_len, batch_first=True, enforce_sorted=False
        )
        out, h = self.gru(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=src.size(1))
        # join both directions into the first decoder state
        h0 = torch.tanh(self.bridge(torch.cat([h[0], h[1]], dim=-1)))
        return out, h0.unsqueeze(0)


class LuongAttention(nn.Module):
    def __init__(self, hid, enc_dim):
        super().__init__()
        self.W = nn.Linear(hid, enc_dim, bias=False)

    def forward(self, query, memory, mask):
        # query (B, T, H), memory (B, S, E), mask (B, S) True where there is a token
        scores = torch.bmm(self.W(query), memory.transpose(1, 2))
        scores = scores.masked_fill(~mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)
        return torch.bmm(weights, memory), weights


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid, pad_id):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=pad_id)
        self.gru = nn.GRU(emb, hid, batch_first=True)
        self.attention = LuongAttention(hid, 2 * hid)
        self.combine = nn.Linear(3 * hid, hid)
        self.out = nn.Linear(hid, vocab)

    def forward(self, tokens, h, memory, mask):
        states, h = self.gru(self.embedding(tokens), h)
        context, _ = self.attention(states, memory, mask)
        y = torch.tanh(self.combine(torch.cat([states, context], dim=-1)))
        return self.out(y), h


class Seq2Seq(nn.Module):
    def __init__(self, vocab, emb, hid, pad_id, bos_id):
        super().__init__()
        self.pad_id, self.bos_id = pad_id, bos_id
        self.encoder = Encoder(vocab, emb, hid, pad_id)
        self.decoder = Decoder(vocab, emb, hid, pad_id)

    def forward(self, src, src_len, tgt_in):
        """Teacher forcing: tgt_in is <bos> + the gold target without its last token."""
        memory, h = self.encoder(src, src_len)
        logits, _ = self.decoder(tgt_in, h, memory, src != self.pad_id)
        return logits

    @torch.no_grad()
    def greedy(self, src, src_len, max_len):
        memory, h = self.encoder(src, src_len)
        mask = src != self.pad_id
        tok = torch.full((src.size(0), 1), self.bos_id, dtype=torch.long)
        result = []
        for _ in range(max_len):
            logits, h = self.decoder(tok, h, memory, mask)
            tok = logits.argmax(-1)
            result.append(tok)
        return torch.cat(result, dim=1)
