import random
from collections import Counter

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

GOOD = "great lovely superb fun charming bright moving".split()
BAD = "dull awful boring weak noisy bland clumsy".split()
FILL = "the film plot actor scene music was is and with a very rather".split()


def corpus(n, seed):
    r = random.Random(seed)
    rows = []
    for _ in range(n):
        y = r.random() < 0.5
        words = r.choices(FILL, k=r.randint(5, 14)) + r.choices(GOOD if y else BAD, k=2) + r.choices(BAD if y else GOOD, k=1)
        r.shuffle(words)
        rows.append((" ".join(words), float(y)))
    return rows


class Vocabulary:
    def __init__(self, rows):
        counts = Counter(w for text, _ in rows for w in text.split())
        self.index = {w: i + 2 for i, (w, _) in enumerate(counts.most_common())}

    def __call__(self, text):
        return torch.tensor([self.index.get(w, 1) for w in text.split()])

    def __len__(self):
        return len(self.index) + 2


class BagGru(nn.Module):
    def __init__(self, n, d=24):
        super().__init__()
        self.emb = nn.Embedding(n, d, padding_idx=0)
        self.gru = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, 1)

    def forward(self, ids, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.out(h[-1]).squeeze(1)


class Runner:
    def __init__(self, model, lr, accumulate, device):
        self.model, self.accumulate, self.device = model.to(device), accumulate, device
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
        self.loss = nn.BCEWithLogitsLoss()

    def _backward(self, loss):
        if self.scaler.is_enabled():
            self.scaler.scale(loss / self.accumulate).backward()
        else:
            loss.backward()

    def _advance(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def train_epoch(self, loader):
        self.model.train()
        total, pending = 0.0, 0
        for ids, lengths, y in loader:
            with torch.autocast(self.device, dtype=torch.float16, enabled=self.scaler.is_enabled()):
                loss = self.loss(self.model(ids.to(self.device), lengths), y.to(self.device))
            self._backward(loss)
            total += loss.item()
            pending += 1
            if pending == self.accumulate:
                self._advance()
                pending = 0
        return total / len(loader)

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        right = 0
        for ids, lengths, y in loader:
            right += ((self.model(ids.to(self.device), lengths) > 0).cpu() == (y > 0.5)).sum().item()
        return right / len(loader.dataset)


def main():
    torch.manual_seed(4)
    rows, held = corpus(512, 1), corpus(128, 2)
    vocab = Vocabulary(rows)

    def collate(batch):
        seqs = [vocab(t) for t, _ in batch]
        return pad_sequence(seqs, batch_first=True), torch.tensor([len(s) for s in seqs]), torch.tensor([y for _, y in batch])

    train = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=collate)
    valid = DataLoader(held, batch_size=64, collate_fn=collate)
    runner = Runner(BagGru(len(vocab)), lr=0.4, accumulate=16, device="cuda" if torch.cuda.is_available() else "cpu")
    for epoch in range(10):
        print(epoch, f"loss {runner.train_epoch(train):.4f} accuracy {runner.accuracy(valid):.3f}")


if __name__ == "__main__":
    main()
