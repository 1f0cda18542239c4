"""Next-syllable model on text from a made-up language."""
import json
import pathlib

import numpy as np
import torch
from torch import nn

CFG = json.loads((pathlib.Path(__file__).parent / "config.json").read_text())


def babble(n, k):
    rng = np.random.default_rng(17)
    table = rng.dirichlet(np.full(k, 0.35), size=k)
    cum = table.cumsum(1)
    u = rng.random(n)
    seq, s = np.empty(n, dtype=np.int64), 0
    for i in range(n):
        s = min(int(np.searchsorted(cum[s], u[i])), k - 1)
        seq[i] = s
    return torch.from_numpy(seq)


class SyllableModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c["symbols"], c["emb"])
        self.rnn = nn.GRU(c["emb"], c["hidden"], batch_first=True)
        self.drop = nn.Dropout(c["dropout"])
        self.head = nn.Linear(c["hidden"], c["symbols"])

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(self.drop(h))


def xent(model, seqs):
    logits = model(seqs[:, :-1])
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), seqs[:, 1:].reshape(-1))


def main():
    c = CFG
    torch.manual_seed(c["seed"])
    stream = babble(140000, c["symbols"])
    window = c["length"] + 1
    seqs = stream[:len(stream) // window * window].view(-1, window)
    train, valid = seqs[:-600], seqs[-600:]
    model = SyllableModel(c)
    opt = torch.optim.AdamW(model.parameters(), lr=c["lr"], weight_decay=c["weight_decay"])
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, c["steps"])
    run = []
    for step in range(1, c["steps"] + 1):
        loss = xent(model, train[torch.randint(len(train), (c["batch"],))])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        run.append(loss.item())
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                v = xent(model, valid).item()
            model.train()
            print(f"step {step}/{c['steps']} train_loss {np.mean(run):.4f} valid_loss {v:.4f}")
            run = []


if __name__ == "__main__":
    main()
