import math
import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from fused import FusedBackward

random.seed(16)
torch.manual_seed(16)

WORDS = {"det": ["the", "a"], "adj": ["red", "old", "tiny"], "noun": ["cat", "ship", "king", "tree"],
         "verb": ["sees", "likes", "finds"]}
VOCAB = ["<eos>"] + [w for ws in WORDS.values() for w in ws]
STOI = {w: i for i, w in enumerate(VOCAB)}


def sentence(rnd):
    def np_():
        return [rnd.choice(WORDS["det"])] + [rnd.choice(WORDS["adj"])] * rnd.randint(0, 1) + [rnd.choice(WORDS["noun"])]
    return np_() + [rnd.choice(WORDS["verb"])] + np_() + ["<eos>"]


def stream(seed, length=16, batch=32):
    rnd, buf = random.Random(seed), []
    while True:
        while len(buf) < batch * (length + 1):
            buf += [STOI[w] for w in sentence(rnd)]
        block, buf = buf[: batch * (length + 1)], buf[batch * (length + 1):]
        t = torch.tensor(block).view(batch, length + 1)
        yield t[:, :-1], t[:, 1:]


class Net(nn.Module):
    def __init__(self, d=32, layers=3):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB), d)
        self.layers = nn.ModuleList(nn.GRU(d, d, batch_first=True) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.out = nn.Linear(d, len(VOCAB))

    def forward(self, ids):
        h = self.emb(ids)
        for rnn, norm in zip(self.layers, self.norms):
            block = lambda z, rnn=rnn, norm=norm: z + rnn(norm(z))[0]
            h = checkpoint(block, h, use_reentrant=False) if self.training else block(h)
        return self.out(h)


def main(steps=200, peak=5e-3):
    net = Net()
    fused = FusedBackward(net.parameters(), torch.optim.AdamW, lr=peak, weight_decay=0.01)
    ce = nn.CrossEntropyLoss()
    train, held = stream(1), stream(2)
    test = [next(held) for _ in range(5)]

    net.train()
    for step, (x, y) in zip(range(steps), train):
        fused.set_lr(peak * min(1.0, (step + 1) / 20) * (0.55 + 0.45 * math.cos(math.pi * step / steps)))
        loss = ce(net(x).transpose(1, 2), y)
        loss.backward()
        if step % 50 == 49:
            net.eval()
            with torch.no_grad():
                v = sum(ce(net(a).transpose(1, 2), b).item() for a, b in test) / len(test)
            net.train()
            print(f"step {step + 1} train {loss.item():.3f} held-out ppl {math.exp(v):.2f}")
    fused.close()


if __name__ == "__main__":
    main()
