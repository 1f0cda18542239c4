import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader

import settings as S
from data import Collate, build_vocab, make_pairs


class Seq2Seq(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, S.EMBED)
        self.encoder = nn.GRU(S.EMBED, S.HIDDEN, batch_first=True)
        self.decoder = nn.GRU(S.EMBED, S.HIDDEN, batch_first=True)
        self.out = nn.Linear(S.HIDDEN, size)

    def forward(self, src, lengths, prefix):
        packed = pack_padded_sequence(self.embed(src), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.encoder(packed)
        dec, _ = self.decoder(self.embed(prefix), h)
        return self.out(dec)


def main():
    torch.manual_seed(S.SEED)
    train_pairs, val_pairs = make_pairs(1500, S.SEED), make_pairs(300, S.SEED + 1)
    vocab = build_vocab(train_pairs)
    collate = Collate(vocab)
    train_dl = DataLoader(train_pairs, batch_size=S.BATCH, shuffle=True, collate_fn=collate)
    val_dl = DataLoader(val_pairs, batch_size=S.BATCH, collate_fn=collate)
    model = Seq2Seq(len(vocab))
    criterion = nn.CrossEntropyLoss(ignore_index=S.PAD)
    opt = torch.optim.Adam(model.parameters(), lr=S.LR)

    for epoch in range(S.EPOCHS):
        model.train()
        for src, lengths, tgt in train_dl:
            logits = model(src, lengths, tgt[:, :-1])
            loss = criterion(logits.flatten(0, 1), tgt[:, 1:].flatten())
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        hit = total = 0
        with torch.no_grad():
            for src, lengths, tgt in val_dl:
                gold = tgt[:, 1:]
                pred = model(src, lengths, tgt[:, :-1]).argmax(-1)
                real = gold != vocab.pad
                hit += ((pred == gold) & real).sum().item()
                total += real.sum().item()
        print(f"epoch {epoch}: last loss {loss.item():.4f}, char accuracy {hit / total:.4f}")


if __name__ == "__main__":
    main()
