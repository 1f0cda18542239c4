# char-level town name generator
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
rnd = random.Random(9)

PRE = "ober unter neu alt klein gross bad sankt".split()
MID = "wald berg stein bach see feld linden eichen mühl kirch".split()
END = "heim dorf stadt hausen burg ingen au".split()
names = sorted({(rnd.choice(PRE) if rnd.random() < .5 else "") + rnd.choice(MID) + rnd.choice(END) for _ in range(900)})
rnd.shuffle(names)
cut = int(0.9 * len(names))
train_names, val_names = names[:cut], names[cut:]

PAD, BOS, EOS = 0, 1, 2
chars = sorted(set("".join(names)))
stoi = {c: i + 3 for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}
V = len(chars) + 3


def encode(name):
    return [BOS] + [stoi[c] for c in name] + [EOS]


def make_batch(batch_names):
    lengths = torch.tensor([len(n) for n in batch_names])
    rows = [torch.tensor(encode(n)) for n in batch_names]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    inputs, targets = ids[:, :-1], ids[:, 1:]
    weight = (torch.arange(targets.size(1))[None, :] < lengths[:, None]).float()
    return inputs, targets, weight


class CharGRU(nn.Module):
    def __init__(self, dim=32, hidden=96):
        super().__init__()
        self.emb = nn.Embedding(V, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, V)

    def forward(self, ids, state=None):
        h, state = self.gru(self.emb(ids), state)
        return self.out(h), state


def loss_on(model, batch_names):
    inputs, targets, weight = make_batch(batch_names)
    logits, _ = model(inputs)
    nll = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (nll * weight).sum() / weight.sum()


@torch.no_grad()
def sample(model, limit=40, temperature=0.7):
    model.eval()
    tok, state, out = torch.tensor([[BOS]]), None, []
    for _ in range(limit):
        logits, state = model(tok, state)
        logits[..., :2] = -float("inf")
        nxt = torch.multinomial(F.softmax(logits[0, -1] / temperature, -1), 1).item()
        if nxt == EOS:
            break
        out.append(itos[nxt])
        tok = torch.tensor([[nxt]])
    return "".join(out)


model = CharGRU()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    model.train()
    rnd.shuffle(train_names)
    for i in range(0, len(train_names), 32):
        loss = loss_on(model, train_names[i:i + 32])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
    model.eval()
    with torch.no_grad():
        val = loss_on(model, val_names).item()
    print(f"{epoch:2d} train {loss.item():.3f} val {val:.3f}  {sample(model)}")
