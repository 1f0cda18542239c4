import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SYLLABLES = "ka ri mo ta len dor wyn bel sha nu".split()
rnd = random.Random(6)
NAMES = ["".join(rnd.choices(SYLLABLES, weights=range(1, 11), k=rnd.randint(2, 3))) for _ in range(900)]
ALPHABET = ["."] + sorted(set("".join(NAMES)))
STOI = {c: i for i, c in enumerate(ALPHABET)}
END = STOI["."]


class CharModel(nn.Module):
    def __init__(self, n, dim=40):
        super().__init__()
        self.inp = nn.Embedding(n, dim)
        self.rnn = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n)
        nn.init.normal_(self.inp.weight, std=dim**-0.5)
        self.out.weight = self.inp.weight

    def forward(self, ids, state=None):
        h, state = self.rnn(self.inp(ids), state)
        return self.out(h), state


def tensorise(names):
    longest = max(map(len, names)) + 1
    x = torch.full((len(names), longest), END)
    y = torch.full((len(names), longest), -1)
    for i, name in enumerate(names):
        ids = [STOI[c] for c in name]
        x[i, 1:len(ids) + 1] = torch.tensor(ids)
        y[i, :len(ids) + 1] = torch.tensor(ids + [END])
    return x, y


def loss_of(model, x, y):
    logits, _ = model(x)
    return F.cross_entropy(logits.transpose(1, 2), y, ignore_index=-1)


@torch.no_grad()
def sample(model, generator, limit=12):
    model.eval()
    out, state, last = [], None, torch.tensor([[END]])
    for _ in range(limit):
        logits, state = model(last, state)
        last = torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1, generator=generator)
        if last.item() == END:
            break
        out.append(ALPHABET[last.item()])
    return "".join(out)


def main():
    torch.manual_seed(6)
    (x, y), (xv, yv) = tensorise(NAMES[:750]), tensorise(NAMES[750:])
    model = CharModel(len(ALPHABET))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(10):
        model.train()
        for i in torch.randperm(len(x)).split(50):
            loss = loss_of(model, x[i], y[i])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        with torch.no_grad():
            print(f"{epoch}: val {loss_of(model, xv, yv).item():.4f}")
    g = torch.Generator().manual_seed(0)
    print([sample(model, g) for _ in range(6)])


if __name__ == "__main__":
    main()
