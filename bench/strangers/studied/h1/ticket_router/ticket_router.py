"""Routes support tickets to a team. The vocabulary grows while the training texts are read."""
import logging
import random

import torch
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("router")

TEAMS = {
    "billing": "invoice refund charge card payment overdue receipt price".split(),
    "network": "wifi router latency dns outage cable signal vpn".split(),
    "accounts": "password login reset locked username email token profile".split(),
}
FILLER = "please help the my is not since yesterday with a and it hello thanks again issue problem".split()


def write_ticket(team, rng):
    words = rng.choices(FILLER, k=rng.randint(5, 9))
    words += rng.choices(TEAMS[team], k=1)
    if rng.random() < 0.3:
        words += rng.choices(TEAMS[rng.choice(list(TEAMS))], k=1)
    rng.shuffle(words)
    return " ".join(words)


class Vocabulary:
    def __init__(self):
        self.index = {"<pad>": 0, "<unk>": 1}

    def add(self, text):
        for w in text.split():
            self.index.setdefault(w, len(self.index))

    def encode(self, text):
        return [self.index.get(w, 1) for w in text.split()]


class Router(nn.Module):
    def __init__(self, n_words, n_teams, dim=6):
        super().__init__()
        self.words = nn.Embedding(n_words, dim, padding_idx=0)
        self.out = nn.Linear(dim, n_teams)

    def grow(self, n_words):
        old = self.words
        new = nn.Embedding(n_words, old.embedding_dim, padding_idx=0)
        with torch.no_grad():
            new.weight[: old.num_embeddings] = old.weight
        self.words = new

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))


class RoutingJob:
    def __init__(self, seed=0, lr=0.02):
        self.rng = random.Random(seed)
        torch.manual_seed(seed)
        self.teams = list(TEAMS)
        self.vocab = Vocabulary()
        self.model = Router(len(self.vocab.index), len(self.teams))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.loss = nn.CrossEntropyLoss()

    def load(self, n):
        labels = [self.rng.randrange(len(self.teams)) for _ in range(n)]
        texts = [write_ticket(self.teams[k], self.rng) for k in labels]
        return texts, torch.tensor(labels)

    def prepare(self):
        self.train_texts, self.train_y = self.load(600)
        self.test_texts, self.test_y = self.load(200)
        for text in self.train_texts:
            self.vocab.add(text)
        self.model.grow(len(self.vocab.index))
        log.info("vocabulary: %d words", len(self.vocab.index))

    def batch(self, texts):
        rows = [torch.tensor(self.vocab.encode(t)) for t in texts]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def run(self, epochs=8, size=30):
        self.prepare()
        for epoch in range(epochs):
            order, total = torch.randperm(len(self.train_y)), 0.0
            for idx in order.split(size):
                logits = self.model(self.batch([self.train_texts[i] for i in idx.tolist()]))
                loss = self.loss(logits, self.train_y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(idx)
            with torch.no_grad():
                acc = (self.model(self.batch(self.test_texts)).argmax(1) == self.test_y).float().mean().item()
            log.info("epoch %d loss %.4f test accuracy %.3f", epoch, total / len(order), acc)


if __name__ == "__main__":
    RoutingJob().run()
