# minimal char-level rnn in plain tensors: no nn.Module, no optim. stateful truncated bptt,
# so the streams are read strictly in order and the hidden state is carried (detached) between chunks.
import math
import random

import torch

random.seed(2); torch.manual_seed(2)

subj = "the cat|a dog|my aunt|one robot|every child".split("|")
verb = "eats|sees|likes|paints|hears".split("|")
obj = "green apples|old trains|warm bread|tiny birds|loud music".split("|")
sent = lambda: f"{random.choice(subj)} {random.choice(verb)} {random.choice(obj)}. "
text = "".join(sent() for _ in range(900))
cut = int(len(text) * 0.9)
chars = sorted(set(text[:cut]))
ix = {c: i for i, c in enumerate(chars)}
enc = lambda s: torch.tensor([ix[c] for c in s if c in ix])
train_ids, val_ids = enc(text[:cut]), enc(text[cut:])
V, H, B, T = len(chars), 64, 16, 25

# parameters
W = {
    "xh": torch.randn(V, H) / math.sqrt(V), "hh": torch.linalg.qr(torch.randn(H, H))[0] * 0.9,
    "hy": torch.randn(H, V) / math.sqrt(H), "bh": torch.zeros(H), "by": torch.zeros(V),
}
for p in W.values(): p.requires_grad_()
vel = {k: torch.zeros_like(p) for k, p in W.items()}


def streams(ids, b):
    n = (len(ids) - 1) // b
    return ids[:n * b].view(b, n), ids[1:n * b + 1].view(b, n)


def unroll(x, y, h):
    nll = 0.0
    for t in range(x.shape[1]):
        h = torch.tanh(W["xh"][x[:, t]] + h @ W["hh"] + W["bh"])
        logp = (h @ W["hy"] + W["by"]).log_softmax(1)
        nll = nll - logp.gather(1, y[:, t:t + 1]).sum()
    return nll / y.numel(), h


def val_bpc():
    x, y = streams(val_ids, 4)
    with torch.no_grad():
        nll, _ = unroll(x, y, torch.zeros(4, H))
    return nll.item() / math.log(2)


X, Y = streams(train_ids, B)
lr, mom, clip = 0.3, 0.9, 1.0
for epoch in range(6):
    h, tot, n = torch.zeros(B, H), 0.0, 0
    for s in range(0, X.shape[1], T):
        loss, h = unroll(X[:, s:s + T], Y[:, s:s + T], h.detach())
        loss.backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in W.values()]).norm()
            scale = min(1.0, clip / (norm.item() + 1e-6))
            for k, p in W.items():
                vel[k].mul_(mom).add_(p.grad, alpha=scale)
                p -= lr * (1 - mom) * vel[k]
                p.grad = None
        tot += loss.item(); n += 1
    lr *= 0.85
    print(f"epoch {epoch} train {tot / n / math.log(2):.3f} bpc, val {val_bpc():.3f} bpc")

# a sample
with torch.no_grad():
    h, c, out = torch.zeros(1, H), ix["t"], ["t"]
    for _ in range(80):
        h = torch.tanh(W["xh"][[c]] + h @ W["hh"] + W["bh"])
        c = torch.multinomial((h @ W["hy"] + W["by"]).softmax(1), 1).item()
        out.append(chars[c])
print("".join(out))
