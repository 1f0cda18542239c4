"""Character language model on generated cooking instructions."""
import random

import torch
from torch import nn

SEED = 0
VERBS = ["chop", "fry", "boil", "mix", "peel", "roast", "season", "slice"]
FOODS = ["onions", "carrots", "the rice", "some garlic", "two eggs", "the beans", "a leek"]
TAILS = ["for five minutes", "until golden", "with salt", "in a large pan", "and set aside"]


def write_text(n_sentences):
    rng = random.Random(1)
    return "".join(f"{rng.choice(VERBS)} {rng.choice(FOODS)} {rng.choice(TAILS)}. "
                   for _ in range(n_sentences))


class CharGRU(nn.Module):
    def __init__(self, n_chars, emb=24, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(n_chars, emb)
        self.gru = nn.GRU(emb, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_chars)

    def forward(self, x):
        return self.out(self.gru(self.emb(x))[0])


def batch(data, size=16, length=32):
    starts = torch.randint(0, len(data) - length - 1, (size,))
    x = torch.stack([data[s:s + length] for s in starts])
    y = torch.stack([data[s + 1:s + length + 1] for s in starts])
    return x, y


def main(steps=500, lr=0.5, max_norm=1.0, report=25):
    torch.manual_seed(SEED)
    text = write_text(2000)
    chars = sorted(set(text))
    ids = torch.tensor([chars.index(c) for c in text])
    split = int(0.9 * len(ids))
    train, held_out = ids[:split], ids[split:]
    hx = held_out[:3200].view(100, 32)
    model = CharGRU(len(chars))
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    running = 0.0
    for step in range(1, steps + 1):
        x, y = batch(train)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        opt.step()
        running += loss.item()
        if step % report == 0:
            with torch.no_grad():
                val = nn.functional.cross_entropy(model(hx[:, :-1]).flatten(0, 1),
                                                  hx[:, 1:].flatten()).item()
            print(f"step {step:4d} | train {running / report:.4f} | val {val:.4f}")
            running = 0.0


if __name__ == "__main__":
    main()
