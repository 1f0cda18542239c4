import random
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

random.seed(0); np.random.seed(0); torch.manual_seed(0)

# ---------------------------------------------------------------- data
tables = {"users": ["name", "age", "city"], "orders": ["price", "date", "user"], "items": ["weight", "color", "price"]}
templates = ["show {c} of {t} where {d} is {v}", "give me the {c} from {t} with {d} {v}", "{t} {c} for {d} {v} please"]


def make_pair():
    t = random.choice(list(tables))
    c, d = random.sample(tables[t], 2)
    v = random.choice([5, 18, 30, 42, 65])
    q = random.choice(templates).format(c=c, t=t, d=d, v=v)
    return q, f"select {c} from {t} where {d}={v};"


pairs = [make_pair() for _ in range(700)]
chars = sorted(set("".join(q + s for q, s in pairs)) | {"|"})
stoi = {c: i + 1 for i, c in enumerate(chars)}
itos = {i: c for c, i in stoi.items()}

# choose the sequence length so that (nearly) all examples fit
lengths = [len((q + " | " + s).split()) for q, s in pairs]
seq_len = int(np.percentile(lengths, 99)) * 4
print("sequence length", seq_len)


def encode(q, s):
    ids = [stoi[c] for c in q + "|" + s][:seq_len]
    n = min(len(q) + 1, len(ids))
    x = torch.zeros(seq_len, dtype=torch.long)
    y = torch.full((seq_len,), -1)
    x[: len(ids)] = torch.tensor(ids)
    y[n : len(ids)] = x[n : len(ids)]
    return x, y


X, Y = map(torch.stack, zip(*[encode(*p) for p in pairs]))
Xtr, Ytr = X[:600], Y[:600]


# ---------------------------------------------------------------- model
class GruAttentionLM(nn.Module):
    def __init__(self, v, d=96):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.att_q, self.att_k = nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(2 * d, v)

    def forward(self, ids):
        h, _ = self.rnn(self.e(ids))
        score = self.att_q(h) @ self.att_k(h).transpose(1, 2) / h.shape[-1] ** 0.5
        future = torch.ones(score.shape[-2:], dtype=torch.bool).triu(1)
        a = score.masked_fill(future, -1e9).softmax(-1) @ h
        return self.out(torch.cat([h, a], -1))


net = GruAttentionLM(len(stoi) + 1)
opt = torch.optim.Adam(net.parameters(), lr=4e-3)

# ---------------------------------------------------------------- training
for epoch in range(8):
    perm = torch.randperm(len(Xtr))
    tot = 0.0
    for k in range(0, len(perm), 40):
        b = perm[k : k + 40]
        logits = net(Xtr[b, :-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), Ytr[b, 1:].reshape(-1), ignore_index=-1)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        tot += loss.item()
    print(f"epoch {epoch + 1} loss {tot / (len(perm) // 40):.4f}")

# ---------------------------------------------------------------- test
net.eval()
done = exact = 0
for q, s in pairs[600:620]:
    ids = [stoi[c] for c in q + "|"]
    out = ""
    with torch.no_grad():
        for _ in range(45):
            nxt = net(torch.tensor([ids]))[0, -1].argmax().item()
            ids.append(nxt)
            out += itos.get(nxt, "?")
            if out.endswith(";"):
                break
    done += out.endswith(";")
    exact += out == s
print(f"finished {done}/20 exact {exact}/20, e.g. {q!r} -> {out!r}")
