"""Word LM on nursery rhymes with tied embeddings; prompts are not scored."""
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

ANIMALS = {"cow": "moo", "pig": "oink", "duck": "quack", "sheep": "baa", "cat": "meow", "dog": "woof"}
PAD, BOS, EOS = "<pad>", "<bos>", "<eos>"


@dataclass
class Config:
    dim: int = 48
    layers: int = 1
    epochs: int = 8
    lr: float = 5e-3
    batch: int = 16
    vocab_multiple: int = 32


def rhyme(rnd):
    a, b = rnd.sample(list(ANIMALS), 2)
    prompt = f"on the farm there was a {a} and a {b} .".split()
    answer = f"the {a} says {ANIMALS[a]} {ANIMALS[a]} and the {b} says {ANIMALS[b]} {ANIMALS[b]}".split()
    return prompt, answer


class RhymeLM(nn.Module):
    def __init__(self, rows, cfg):
        super().__init__()
        self.emb = nn.Embedding(rows, cfg.dim)
        self.rnn = nn.LSTM(cfg.dim, cfg.dim, cfg.layers, batch_first=True)
        self.norm = nn.LayerNorm(cfg.dim)
        self.decoder = nn.Linear(cfg.dim, rows)
        self.decoder.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, std=0.1)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.decoder(self.norm(h))


def main(cfg):
    torch.manual_seed(0)
    rnd = random.Random(0)
    train, test = [rhyme(rnd) for _ in range(320)], [rhyme(rnd) for _ in range(60)]
    stoi = {PAD: 0, BOS: 1, EOS: 2}
    for prompt, answer in train:
        for w in prompt + answer:
            stoi.setdefault(w, len(stoi))
    rows = -(-len(stoi) // cfg.vocab_multiple) * cfg.vocab_multiple
    print(f"{len(stoi)} words, {rows} embedding rows")

    def collate(batch):
        ids, labels = [], []
        for prompt, answer in batch:
            seq = [stoi[w] for w in [BOS, *prompt, *answer, EOS]]
            n = 1 + len(prompt)
            ids.append(torch.tensor(seq))
            labels.append(torch.tensor([-100] * n + seq[n:]))
        pad = nn.utils.rnn.pad_sequence
        return pad(ids, batch_first=True), pad(labels, batch_first=True, padding_value=-100)

    def shifted(model, ids, labels):
        return model(ids)[:, :-1].flatten(0, 1), labels[:, 1:].flatten()

    train_dl = DataLoader(train, cfg.batch, shuffle=True, collate_fn=collate)
    test_dl = DataLoader(test, 60, collate_fn=collate)
    model = RhymeLM(rows, cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        model.train()
        for ids, labels in train_dl:
            logits, goal = shifted(model, ids, labels)
            loss = F.cross_entropy(logits, goal)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        model.eval()
        with torch.no_grad():
            logits, goal = shifted(model, *next(iter(test_dl)))
            scored = goal != -100
            acc = (logits.argmax(-1) == goal)[scored].float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} answer word accuracy {acc:.3f}")


if __name__ == "__main__":
    main(Config())
