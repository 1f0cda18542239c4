import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from ner_data import sentences
from vocabs import Vocab

SEED = 13


class BiLSTMTagger(nn.Module):
    def __init__(self, n_words, n_tags, word_pad, dim=32):
        super().__init__()
        self.emb = nn.Embedding(n_words, dim, padding_idx=word_pad)
        self.lstm = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(2 * dim, n_tags)

    def forward(self, words):
        h, _ = self.lstm(self.emb(words))
        return self.out(self.drop(h))


def make_collate(words, tags):
    def collate(rows):
        w = [torch.tensor([words[t] for t in ws]) for ws, _ in rows]
        y = [torch.tensor([tags[t] for t in ts]) for _, ts in rows]
        return (pad_sequence(w, batch_first=True, padding_value=words.pad),
                pad_sequence(y, batch_first=True, padding_value=tags.pad))
    return collate


@torch.no_grad()
def tag_report(net, rows, words, tags):
    net.eval()
    hit, tot = {}, {}
    for ws, ts in rows:
        pred = net(torch.tensor([[words[w] for w in ws]]))[0].argmax(-1)
        for p, t in zip(pred.tolist(), ts):
            tot[t] = tot.get(t, 0) + 1
            hit[t] = hit.get(t, 0) + (tags.itos[p] == t)
    return {t: round(hit[t] / tot[t], 3) for t in sorted(tot)}


def main():
    torch.manual_seed(SEED)
    train, dev = sentences(600, 0), sentences(100, 1)
    words = Vocab([w for ws, _ in train for w in ws], specials=["<unk>", "<pad>"])
    tags = Vocab([t for _, ts in train for t in ts], specials=["<pad>"])
    net = BiLSTMTagger(len(words), len(tags), words.pad)
    criterion = nn.CrossEntropyLoss(ignore_index=words.pad)
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    loader = DataLoader(train, 30, shuffle=True, collate_fn=make_collate(words, tags))
    for epoch in range(5):
        net.train()
        total = 0.0
        for w, y in loader:
            logits = net(w)
            loss = criterion(logits.view(-1, len(tags)), y.view(-1))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} dev recall {tag_report(net, dev, words, tags)}")


if __name__ == "__main__":
    main()
