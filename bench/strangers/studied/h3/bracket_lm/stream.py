import random

import torch


def bracket_text(n_tokens, seed=0):
    """Nested brackets with filler letters: needs memory over chunks."""
    rnd, out, stack = random.Random(seed), [], []
    pairs = {"(": ")", "[": "]", "{": "}"}
    while len(out) < n_tokens:
        u = rnd.random()
        if u < 0.25 and len(stack) < 4:
            c = rnd.choice("([{")
            stack.append(pairs[c])
            out.append(c)
        elif u < 0.5 and stack:
            out.append(stack.pop())
        else:
            out.append(rnd.choice("ab"))
    return out


def columns(tokens, vocab, rows):
    ids = torch.tensor([vocab[t] for t in tokens])
    n = len(ids) // rows
    return ids[:n * rows].view(rows, n)
