import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

from corpus import TAGS, Vocab, corpus

TAG_ID = {t: i for i, t in enumerate(TAGS)}
PAD_TAG = -1


class Collate:
    def __init__(self, vocab):
        self.vocab = vocab

    def __call__(self, batch):
        toks = [torch.tensor(self.vocab.encode(w)) for w, _ in batch]
        tags = [torch.tensor([TAG_ID[t] for t in ts]) for _, ts in batch]
        lengths = torch.tensor([len(t) for t in toks])
        return (
            pad_sequence(toks, batch_first=True, padding_value=Vocab.PAD),
            pad_sequence(tags, batch_first=True, padding_value=PAD_TAG),
            lengths,
        )


class Tagger(nn.Module):
    def __init__(self, n_words, n_tags, emb=24, hid=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, emb, padding_idx=Vocab.PAD)
        self.drop = nn.Dropout(0.2)
        self.lstm = nn.LSTM(emb, hid, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hid, n_tags)

    def forward(self, toks, lengths):
        packed = pack_padded_sequence(self.drop(self.emb(toks)), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=toks.size(1))
        return self.out(h)


@torch.no_grad()
def score(model, loader):
    model.eval()
    right = seen = 0
    for toks, tags, lengths in loader:
        real = tags != PAD_TAG
        right += ((model(toks, lengths).argmax(-1) == tags) & real).sum().item()
        seen += real.sum().item()
    return right / seen


def run(epochs=3, seed=9):
    torch.manual_seed(seed)
    train, dev = corpus(400, seed), corpus(100, seed + 1)
    vocab = Vocab(train)
    collate = Collate(vocab)
    train_loader = DataLoader(train, 16, shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(dev, 50, collate_fn=collate)

    model = Tagger(len(vocab), len(TAGS))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    xent = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 1.5, 1.0]))
    for epoch in range(epochs):
        model.train()
        for toks, tags, lengths in train_loader:
            logits = model(toks, lengths)
            loss = xent(logits.reshape(-1, len(TAGS)), tags.reshape(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} dev token accuracy {score(model, dev_loader):.3f}")


if __name__ == "__main__":
    run()
