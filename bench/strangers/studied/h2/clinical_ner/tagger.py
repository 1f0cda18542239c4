"""BIO tagging of drug names and doses in short notes, BiLSTM with padding."""
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

ENTITIES = ["DRUG", "DOSE"]
DRUGS = ["aspirin", "ibuprofen", "metformin", "warfarin", "insulin glargine", "valproic acid"]
PLAIN = "patient was given and then started on after lunch stable today no pain reported".split()


def note(rnd):
    tokens, tags = [], []
    for _ in range(rnd.randint(2, 4)):
        for w in rnd.sample(PLAIN, rnd.randint(2, 4)):
            tokens.append(w)
            tags.append("O")
        for i, w in enumerate(rnd.choice(DRUGS).split()):
            tokens.append(w)
            tags.append("B-DRUG" if i == 0 else "I-DRUG")
        if rnd.random() < 0.7:
            tokens += [str(rnd.choice([5, 10, 50, 500])), "mg"]
            tags += ["B-DOSE", "I-DOSE"]
    return tokens, tags


class Alphabet(dict):
    def add(self, key):
        return self.setdefault(key, len(self))

    def encode(self, keys):
        return torch.tensor([self.add(k) for k in keys])


class BiLSTMTagger(nn.Module):
    def __init__(self, n_tokens, n_tags, dim=32, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(n_tokens, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, n_tags)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


def main():
    torch.manual_seed(0)
    rnd = random.Random(0)
    train, test = [note(rnd) for _ in range(400)], [note(rnd) for _ in range(100)]

    words, tags = Alphabet({"<pad>": 0}), Alphabet()
    for tokens, labels in train:
        for w in tokens:
            words.add(w)
        for t in labels:
            tags.add(t)
    model = BiLSTMTagger(len(words), n_tags=2 * len(ENTITIES))

    def collate(batch):
        ids = [words.encode(t) for t, _ in batch]
        ys = [tags.encode(l) for _, l in batch]
        lengths = torch.tensor([len(i) for i in ids])
        return pad_sequence(ids, True), pad_sequence(ys, True, padding_value=-100), lengths

    train_dl = DataLoader(train, 32, shuffle=True, collate_fn=collate)
    test_dl = DataLoader(test, 50, collate_fn=collate)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)

    for epoch in range(4):
        model.train()
        for ids, ys, lengths in train_dl:
            scores = model(ids, lengths)
            loss = criterion(scores.flatten(0, 1), ys.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        good = total = 0
        with torch.no_grad():
            for ids, ys, lengths in test_dl:
                keep = ys != -100
                good += (model(ids, lengths).argmax(-1)[keep] == ys[keep]).sum().item()
                total += keep.sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} token accuracy {good / total:.4f}")


if __name__ == "__main__":
    main()
