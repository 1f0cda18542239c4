# character level RNN that invents river names
import torch
import torch.nn as nn
import torch.nn.functional as F

PRE = ["al", "bro", "cal", "dan", "el", "fer", "gar", "ish", "kel", "lo", "mor", "ner", "ol", "tam", "wes", "yar"]
MID = ["a", "i", "an", "er", "o", "in", ""]
END = ["ava", "ish", "ne", "ra", "wick", "dale", "burn", "mere", "nau"]
NAMES = [p + m + e for p in PRE for m in MID for e in END]

chars = sorted(set("".join(NAMES)))
stoi = {c: i + 1 for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
STOP = 0
V = len(chars) + 1


def encode_batch(names):
    longest = max(len(n) for n in names) + 1
    x = torch.zeros(len(names), longest, dtype=torch.long)
    y = torch.full((len(names), longest), -100)
    for r, name in enumerate(names):
        ids = [stoi[c] for c in name]
        x[r, 1:len(ids) + 1] = torch.tensor(ids)
        y[r, :len(ids) + 1] = torch.tensor(ids + [STOP])
    return x, y


class CharRNN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(V, 24)
        self.rnn = nn.RNN(24, hidden, num_layers=2, batch_first=True, nonlinearity="relu")
        self.out = nn.Linear(hidden, V)

    def forward(self, x, h=None):
        z, h = self.rnn(self.emb(x), h)
        return self.out(z), h

    @torch.no_grad()
    def invent(self, limit=14):
        x, h, word = torch.zeros(1, 1, dtype=torch.long), None, ""
        while len(word) < limit:
            logits, h = self(x, h)
            c = torch.distributions.Categorical(logits=logits[0, -1]).sample().item()
            if c == STOP:
                break
            word += itos[c]
            x = torch.tensor([[c]])
        return word


def train(model, names, epochs=4, lr=4e-3, clip=0.5):
    params = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.RMSprop(params, lr=lr)
    for epoch in range(epochs):
        perm = torch.randperm(len(names)).tolist()
        total = steps = 0
        for k in range(0, len(perm), 32):
            x, y = encode_batch([names[i] for i in perm[k:k + 32]])
            logits, _ = model(x)
            loss = F.cross_entropy(logits.reshape(-1, V), y.reshape(-1), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, clip)
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / steps:.3f}   e.g. {', '.join(model.invent() for _ in range(4))}")


if __name__ == "__main__":
    torch.manual_seed(8)
    train(CharRNN(), NAMES)
