from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from dates import collate_with, sample_pairs
from vocab import CharVocab


@dataclass
class TrainConfig:
    dim: int = 64
    lr: float = 4e-3
    epochs: int = 5
    batch: int = 64
    ignore_index: int = 0
    seed: int = 31


class Rewriter(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(len(vocab), dim, padding_idx=vocab.pad)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.attend = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.out = nn.Linear(2 * dim, len(vocab))
        self.pad = vocab.pad

    def forward(self, src, tgt_in):
        memory, h = self.encoder(self.embed(src))
        states, _ = self.decoder(self.embed(tgt_in), h)
        seen, _ = self.attend(states, memory, memory, key_padding_mask=src == self.pad, need_weights=False)
        return self.out(torch.cat([states, seen], -1))


def evaluate(model, loader, pad):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for src, tgt_in, tgt_out in loader:
            keep = tgt_out != pad
            right += ((model(src, tgt_in).argmax(-1) == tgt_out) & keep).sum().item()
            total += keep.sum().item()
    return right / total


def main(cfg: TrainConfig):
    torch.manual_seed(cfg.seed)
    pairs = sample_pairs(1700, seed=1)
    train_pairs, test_pairs = pairs[:1500], pairs[1500:]
    vocab = CharVocab.from_texts([t for pair in train_pairs for t in pair])
    collate = collate_with(vocab)
    train = DataLoader(train_pairs, cfg.batch, shuffle=True, collate_fn=collate)
    test = DataLoader(test_pairs, 100, collate_fn=collate)
    model = Rewriter(vocab, cfg.dim)
    criterion = nn.CrossEntropyLoss(ignore_index=cfg.ignore_index)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        for src, tgt_in, tgt_out in train:
            loss = criterion(model(src, tgt_in).flatten(0, 1), tgt_out.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print(f"epoch {epoch} last loss {loss.item():.4f} character accuracy {evaluate(model, test, vocab.pad):.3f}")


if __name__ == "__main__":
    main(TrainConfig())
