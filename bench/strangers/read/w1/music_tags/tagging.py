#!/usr/bin/env python
# Auto-tagging of tracks from precomputed embeddings, a track may carry several tags.
import torch, torch.nn as nn
from torch.utils.data import Dataset, DataLoader
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler

TAGS = ["rock", "electronic", "vocal", "instrumental", "fast", "slow", "live", "lofi"]
CONF = {
    "data": {"n": 1600, "n_val": 400, "dim": 40},
    "model": {"hidden": [128, 64], "dropout": 0.2},
    "optim": {"lr": 1e-3, "weight_decay": 1e-4, "epochs": 10, "batch_size": 64},
    "task": {"kind": "tagging", "threshold": 0.5},
}


class Tracks(Dataset):
    def __init__(self, emb, tags):
        self.emb = torch.as_tensor(emb, dtype=torch.float32)
        self.tags = torch.as_tensor(tags, dtype=torch.float32)

    def __len__(self):
        return len(self.emb)

    def __getitem__(self, i):
        return self.emb[i], self.tags[i]


def load(c):
    x, t = make_multilabel_classification(
        n_samples=c["n"], n_features=c["dim"], n_classes=len(TAGS), n_labels=3,
        length=120, random_state=5)
    k = c["n"] - c["n_val"]
    sc = StandardScaler().fit(x[:k])
    return Tracks(sc.transform(x[:k]), t[:k]), Tracks(sc.transform(x[k:]), t[k:])


def build(c, d_in, d_out):
    seq = []
    for h in c["hidden"]:
        seq += [nn.Linear(d_in, h), nn.ReLU(), nn.Dropout(c["dropout"])]
        d_in = h
    return nn.Sequential(*seq, nn.Linear(d_in, d_out))


OBJECTIVES = {
    "genre": lambda: nn.CrossEntropyLoss(),
    "tagging": lambda: nn.CrossEntropyLoss(label_smoothing=0.05),
    "tempo": lambda: nn.SmoothL1Loss(),
}


def validate(net, dl, thr):
    net.eval()
    hyp, ref = [], []
    with torch.no_grad():
        for e, t in dl:
            hyp.append((net(e).sigmoid() > thr).int().cpu())
            ref.append(t.int())
    return f1_score(torch.cat(ref).numpy(), torch.cat(hyp).numpy(), average="macro", zero_division=0)


if __name__ == "__main__":
    torch.manual_seed(5)
    tr, va = load(CONF["data"])
    o = CONF["optim"]
    tr_dl = DataLoader(tr, o["batch_size"], shuffle=True)
    va_dl = DataLoader(va, 200)
    net = build(CONF["model"], CONF["data"]["dim"], len(TAGS))
    objective = OBJECTIVES[CONF["task"]["kind"]]()
    opt = torch.optim.AdamW(net.parameters(), lr=o["lr"], weight_decay=o["weight_decay"])
    best = -1.0
    for ep in range(o["epochs"]):
        net.train()
        acc = 0.0
        for e, t in tr_dl:
            opt.zero_grad()
            l = objective(net(e), t)
            l.backward()
            opt.step()
            acc += l.item() * len(e)
        f1 = validate(net, va_dl, CONF["task"]["threshold"])
        print(f"{ep:02d} loss {acc / len(tr):.4f} macro-F1 {f1:.3f}")
        if f1 > best:
            best = f1
            torch.save(net.state_dict(), "/tmp/tags_w1.pt")
