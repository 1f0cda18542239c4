from dataclasses import dataclass

import numpy as np
import torch
from torch import nn


@dataclass
class Config:
    vocab: int = 800
    topics: int = 8
    doc_len: int = 30
    emb_dim: int = 32
    lr: float = 3e-3
    weight_decay: float = 0.006
    batch_size: int = 64
    epochs: int = 25
    seed: int = 0


def make_corpus(cfg, n):
    rng = np.random.default_rng(7)
    base = rng.dirichlet(np.full(cfg.vocab, 0.5))
    topic_words = rng.dirichlet(np.full(cfg.vocab, 0.05), size=cfg.topics)
    labels = rng.integers(0, cfg.topics, n)
    docs = np.stack([rng.choice(cfg.vocab, cfg.doc_len, p=0.75 * base + 0.25 * topic_words[t])
                     for t in labels])
    return torch.tensor(docs), torch.tensor(labels)


class BagOfEmbeddings(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.EmbeddingBag(cfg.vocab, cfg.emb_dim, mode="mean")
        self.fc = nn.Linear(cfg.emb_dim, 64)
        self.out = nn.Linear(64, cfg.topics)

    def forward(self, docs):
        return self.out(torch.relu(self.fc(self.emb(docs))))


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    docs, labels = make_corpus(cfg, 5000)
    tr_x, tr_y, te_x, te_y = docs[:4000], labels[:4000], docs[4000:], labels[4000:]
    net = BagOfEmbeddings(cfg)
    optimizer = torch.optim.Adam(net.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg.epochs):
        net.train()
        running, seen = 0.0, 0
        for batch in torch.randperm(len(tr_x)).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = criterion(net(tr_x[batch]), tr_y[batch])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(batch)
            seen += len(batch)
        net.eval()
        with torch.no_grad():
            logits = net(te_x)
            val_loss = criterion(logits, te_y).item()
            acc = (logits.argmax(1) == te_y).float().mean().item()
        print(f"epoch={epoch} loss={running / seen:.4f} val_loss={val_loss:.4f} val_acc={acc:.4f}")


if __name__ == "__main__":
    main()
