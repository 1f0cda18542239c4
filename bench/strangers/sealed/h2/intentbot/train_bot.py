import random

import torch
from torch.utils.data import DataLoader

from intent_model import IntentModel
from options import Options

INTENTS = {
    "weather": ["will it rain {}", "how warm is it {}", "forecast {} please"],
    "alarm": ["wake me up {}", "set an alarm {}", "ring me {} please"],
    "music": ["play some jazz {}", "put on a song {}", "music {} please"],
}
WHEN = ["today", "tomorrow", "at nine", "tonight", "on monday", "now"]


def utterances(n, seed):
    rnd = random.Random(seed)
    names = list(INTENTS)
    for _ in range(n):
        k = rnd.randrange(len(names))
        yield rnd.choice(INTENTS[names[k]]).format(rnd.choice(WHEN)).split(), k


def main():
    torch.manual_seed(0)
    opts = Options()
    train, test = list(utterances(400, 1)), list(utterances(100, 2))
    vocab = {"<pad>": 0, "<unk>": 1}
    for words, _ in train:
        for w in words:
            vocab.setdefault(w, len(vocab))

    def collate(batch):
        rows = [([vocab.get(w, 1) for w in words] + [0] * opts.max_len)[: opts.max_len] for words, _ in batch]
        return torch.tensor(rows), torch.tensor([k for _, k in batch])

    train_dl = DataLoader(train, opts.training.batch_size, shuffle=True, collate_fn=collate)
    test_dl = DataLoader(test, 50, collate_fn=collate)

    model = IntentModel(len(vocab), len(INTENTS), opts)
    optimizer = model.optimizer()
    for epoch in range(opts.training.epochs):
        model.train()
        for ids, intents in train_dl:
            loss = model.loss(ids, intents)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(ids).argmax(1) == k).sum().item() for ids, k in test_dl)
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {hits / len(test):.3f}")


if __name__ == "__main__":
    main()
