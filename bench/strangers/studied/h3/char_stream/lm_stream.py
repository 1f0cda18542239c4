# stateful character model over one long text, adapted from the word language model example
import math
import random

import torch
import torch.nn as nn

random.seed(0)
torch.manual_seed(0)

SUBJ = ["the cat", "a dog", "my friend", "the old man", "her sister"]
VERB = ["sees", "likes", "paints", "follows", "forgets"]
OBJ = ["the river", "a red boat", "the garden", "an apple", "the moon"]
text = " ".join(f"{random.choice(SUBJ)} {random.choice(VERB)} {random.choice(OBJ)}." for _ in range(900))
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
ids = torch.tensor([stoi[c] for c in text])

BATCH, BPTT, EMB, HID = 16, 32, 16, 64
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[:n * bsz].view(bsz, n).t().contiguous().to(DEVICE)


split = int(0.9 * len(ids))
train_data, valid_data = batchify(ids[:split], BATCH), batchify(ids[split:], BATCH)


class CharLM(nn.Module):
    def __init__(self, n_tokens):
        super().__init__()
        self.encoder = nn.Embedding(n_tokens, EMB)
        self.rnn = nn.LSTM(EMB, HID)
        self.decoder = nn.Linear(HID, n_tokens)

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return (w.new_zeros(1, bsz, HID), w.new_zeros(1, bsz, HID))

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out), hidden


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    n = min(BPTT, len(source) - 1 - i)
    return source[i:i + n], source[i + 1:i + 1 + n].reshape(-1)


model = CharLM(len(chars)).to(DEVICE)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def evaluate():
    model.eval()
    hidden, total = model.init_hidden(BATCH), 0.0
    with torch.no_grad():
        for i in range(0, len(valid_data) - 1, BPTT):
            x, y = get_batch(valid_data, i)
            out, hidden = model(x, hidden)
            total += len(x) * criterion(out.view(-1, len(chars)), y).item()
    return total / (len(valid_data) - 1)


def train_one_epoch(epoch):
    model.train()
    hidden = model.init_hidden(BATCH)
    total, count = 0.0, 0
    for i in range(0, len(train_data) - 1, BPTT):
        x, y = get_batch(train_data, i)
        repackage_hidden(hidden)
        optimizer.zero_grad()
        out, hidden = model(x, hidden)
        loss = criterion(out.view(-1, len(chars)), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total, count = total + loss.item(), count + 1
    print(f"epoch {epoch} train ppl {math.exp(total / count):.2f}")


print("untrained valid ppl", round(math.exp(evaluate()), 2))
for ep in range(3):
    train_one_epoch(ep)
    print("   valid ppl", round(math.exp(evaluate()), 2))
