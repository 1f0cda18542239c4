import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(4)
torch.manual_seed(4)

SYLLABLES = {
    "alphan": ["ko", "ri", "ta", "mi", "sa", "no"],
    "betish": ["sch", "ber", "mann", "ler", "hof", "stein"],
    "gammic": ["ov", "ski", "enko", "vich", "yev", "lin"],
}
ORIGINS = list(SYLLABLES)
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def invent_name(origin):
    return "".join(random.choice(SYLLABLES[origin]) for _ in range(random.randint(2, 5)))


def build_corpus(n):
    data = []
    for _ in range(n):
        o = random.randrange(len(ORIGINS))
        name = invent_name(ORIGINS[o])
        data.append((torch.tensor([ALPHABET.index(c) + 1 for c in name]), o))
    return data


def pad_batch(batch):
    names = [name for name, _ in batch]
    origins = torch.tensor([o for _, o in batch])
    names.sort(key=len, reverse=True)
    lengths = torch.tensor([len(n) for n in names])
    return pad_sequence(names, batch_first=True), lengths, origins


class SurnameGRU(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET) + 1, 24, padding_idx=0)
        self.gru = nn.GRU(24, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, len(ORIGINS))

    def forward(self, chars, lengths):
        packed = pack_padded_sequence(self.embed(chars), lengths, batch_first=True)
        _, last = self.gru(packed)
        return self.fc(last[0])


def accuracy(model, loader):
    model.eval()
    good = total = 0
    with torch.no_grad():
        for chars, lengths, origins in loader:
            good += (model(chars, lengths).argmax(1) == origins).sum().item()
            total += len(origins)
    return good / total


train_loader = DataLoader(build_corpus(800), batch_size=32, shuffle=True, collate_fn=pad_batch)
test_loader = DataLoader(build_corpus(200), batch_size=50, collate_fn=pad_batch)

model = SurnameGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(1, 7):
    model.train()
    epoch_loss = 0.0
    for chars, lengths, origins in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(chars, lengths), origins)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
    print("Epoch %d, loss %.4f, test acc %.3f" % (epoch, epoch_loss / len(train_loader), accuracy(model, test_loader)))
