# A tiny decoder that converts units: "12 cm -> mm" => "120". Second stage: answer tuning.
import random
import string

import torch
import torch.nn as nn
import torch.nn.functional as F


class CharVocab:
    def __init__(self):
        self.itos = ["<pad>", "<bos>", "<eos>"] + list(string.digits + string.ascii_lowercase + " ->?=:\n")
        self.stoi = {c: i for i, c in enumerate(self.itos)}
        self.pad, self.bos, self.eos = 0, 1, 2

    def __len__(self):
        return len(self.itos)

    def encode(self, text, eos=False):
        return [self.bos] + [self.stoi[c] for c in text] + ([self.eos] if eos else [])

    def decode(self, ids):
        return "".join(self.itos[i] for i in ids if i > 2)


vocab = CharVocab()
FACTORS = {("cm", "mm"): 10, ("m", "cm"): 100, ("kg", "g"): 1000, ("l", "dl"): 10}
ANSWER = "\nanswer: "


def make_example(rng):
    (a, b), f = rng.choice(list(FACTORS.items()))
    n = rng.randint(1, 40)
    return f"{n} {a} -> {b} ?", str(n * f)


def tokenize(question, answer):
    ids = vocab.encode(question + ANSWER + answer, eos=True)
    return torch.tensor(ids)


def label_answer(ids, marker):
    """Keep the targets that come after the marker, hide the question."""
    labels = ids.clone()
    m = torch.tensor(marker)
    end = len(ids)
    for start in range(len(ids) - len(m) + 1):
        if torch.equal(ids[start:start + len(m)], m):
            end = start + len(m)
            break
    labels[:end] = -100
    return labels


class TinyDecoder(nn.Module):
    def __init__(self, n_vocab, d=64, heads=4, layers=2, ctx=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(n_vocab, d), nn.Embedding(ctx, d)
        layer = nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d, n_vocab)

    def forward(self, ids):
        t = ids.shape[1]
        causal = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        h = self.tok(ids) + self.pos(torch.arange(t))
        return self.head(self.blocks(h, mask=causal))


def batches(pairs, size, rng):
    rng.shuffle(pairs)
    marker = vocab.encode(ANSWER)
    for i in range(0, len(pairs), size):
        seqs = [tokenize(q, a) for q, a in pairs[i:i + size]]
        labels = [label_answer(s, marker) for s in seqs]
        yield (nn.utils.rnn.pad_sequence(seqs, True, vocab.pad),
               nn.utils.rnn.pad_sequence(labels, True, -100))


@torch.no_grad()
def reply(model, question):
    ids = vocab.encode(question + ANSWER)
    n = len(ids)
    while len(ids) < n + 8:
        nxt = model(torch.tensor([ids]))[0, -1].argmax().item()
        if nxt == vocab.eos:
            break
        ids.append(nxt)
    return vocab.decode(ids[n:])


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    pairs = [make_example(rng) for _ in range(600)]
    model = TinyDecoder(len(vocab))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(3):
        losses = []
        for ids, labels in batches(pairs, 32, rng):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")
    tests = [make_example(rng) for _ in range(20)]
    print("exact match", sum(reply(model, q) == a for q, a in tests) / len(tests))


if __name__ == "__main__":
    main()
