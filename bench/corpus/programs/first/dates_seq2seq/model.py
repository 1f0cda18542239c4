import torch
import torch.nn as nn
from data import BOS, PAD
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden, hidden)

    def forward(self, source):
        lengths = (source != PAD).sum(dim=1)
        packed = pack_padded_sequence(
            self.embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, hidden = self.gru(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        hidden = torch.tanh(self.bridge(torch.cat([hidden[0], hidden[1]], dim=-1)))
        return outputs, hidden.unsqueeze(0)


class AttentionDecoder(nn.Module):
    """One GRU whose outputs attend over the encoder's outputs (Luong)."""

    def __init__(self, vocab, emb, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hidden, batch_first=True)
        self.key = nn.Linear(2 * hidden, hidden)
        self.combine = nn.Linear(3 * hidden, hidden)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, tokens, hidden, memory, memory_mask):
        outputs, hidden = self.gru(self.embedding(tokens), hidden)
        scores = outputs @ self.key(memory).transpose(1, 2)
        scores = scores.masked_fill(memory_mask[:, None, :], float("-inf"))
        context = scores.softmax(dim=-1) @ memory
        mixed = torch.tanh(self.combine(torch.cat([outputs, context], dim=-1)))
        return self.out(mixed), hidden


class Seq2Seq(nn.Module):
    def __init__(self, source_vocab, target_vocab, emb=24, hidden=48):
        super().__init__()
        self.encoder = Encoder(source_vocab, emb, hidden)
        self.decoder = AttentionDecoder(target_vocab, emb, hidden)

    def forward(self, source, target_in):
        memory, hidden = self.encoder(source)
        logits, _ = self.decoder(target_in, hidden, memory, source == PAD)
        return logits

    @torch.no_grad()
    def greedy(self, source, length):
        memory, hidden = self.encoder(source)
        token = torch.full((source.size(0), 1), BOS)
        produced = []
        for _ in range(length):
            logits, hidden = self.decoder(token, hidden, memory, source == PAD)
            token = logits.argmax(dim=-1)
            produced.append(token)
        return torch.cat(produced, dim=1)
