# Character-level LSTM on bracket-and-counter strings, truncated backprop through time.
import os
import random

import torch
from torch import nn
from tqdm import tqdm

seed = int(os.getenv("SEED", "0"))
random.seed(seed)
torch.manual_seed(seed)

WORDS = ["alpha ", "beta ", "gamma ", "delta ", "omega "]
HIDDEN = 64
BATCH = 16
BPTT = 24
CLIP = 1.0


def corpus(n):
    out = []
    state = 0
    for _ in range(n):
        out.append(WORDS[state])
        state = (state + random.choice([1, 1, 1, 2])) % len(WORDS)
    return "".join(out)


text = corpus(2600)
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
ids = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(ids))


def batchify(data, batch):
    length = len(data) // batch
    return data[: length * batch].view(batch, length)


train_data = batchify(ids[:split], BATCH)
valid_data = batchify(ids[split:], BATCH)


class CharLSTM(nn.Module):
    def __init__(self, vocab_size, embed, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, embed)
        self.rnn = nn.LSTM(embed, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, vocab_size)

    def forward(self, x, state=None):
        emb = self.embed(x)
        out, state = self.rnn(emb, state)
        return self.decoder(out), state


model = CharLSTM(len(vocab), 16, HIDDEN)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)


def detach(state):
    return tuple(s.detach() for s in state)


def evaluate(data):
    model.eval()
    total, count = 0.0, 0
    state = None
    with torch.no_grad():
        for i in range(0, data.size(1) - 1 - BPTT, BPTT):
            x = data[:, i : i + BPTT]
            y = data[:, i + 1 : i + 1 + BPTT]
            logits, state = model(x, state)
            total += criterion(logits.reshape(-1, len(vocab)), y.reshape(-1)).item()
            count += 1
    return total / count


for epoch in range(1, 6):
    model.train()
    state = None
    starts = range(0, train_data.size(1) - 1 - BPTT, BPTT)
    bar = tqdm(starts, desc=f"epoch {epoch}", mininterval=0.5)
    for i in bar:
        x = train_data[:, i : i + BPTT]
        y = train_data[:, i + 1 : i + 1 + BPTT]
        if state is not None:
            state = detach(state)
        optimizer.zero_grad()
        logits, state = model(x, state)
        loss = criterion(logits.reshape(-1, len(vocab)), y.reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        bar.set_postfix(loss=f"{loss.item():.3f}")
    valid = evaluate(valid_data)
    print(f"| end of epoch {epoch} | train loss {loss.item():5.3f} | valid loss {valid:5.3f} |")
torch.save(model.state_dict(), "charlstm.pt")
