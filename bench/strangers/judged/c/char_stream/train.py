"""Stateful LSTM over parallel text streams, truncated BPTT; functional style, weights in a dict."""
import math
from typing import Dict, Iterator, Tuple

import torch
from torch import Tensor

State = Tuple[Tensor, Tensor]
Weights = Dict[str, Tensor]


def counter_text(n: int, seed: int) -> Tensor:
    """digits of a noisy counter, so that memory over the chunk boundary helps"""
    g = torch.Generator().manual_seed(seed)
    out, v = [], int(torch.randint(0, 10, (1,), generator=g))
    while len(out) < n:
        run = int(torch.randint(1, 5, (1,), generator=g))
        out += [v] * run
        v = (v + 1) % 10 if torch.rand(1, generator=g) < 0.9 else (v + 5) % 10
    return torch.tensor(out[:n])


def streams(text: Tensor, lanes: int, chunk: int) -> Iterator[Tuple[Tensor, Tensor]]:
    per = (len(text) - 1) // lanes
    x = text[: per * lanes].view(lanes, per)
    y = text[1: per * lanes + 1].view(lanes, per)
    for s in range(0, per, chunk):
        yield x[:, s:s + chunk], y[:, s:s + chunk]


def init(vocab: int, d: int) -> Weights:
    mk = lambda *shape: (torch.randn(*shape) / math.sqrt(shape[0])).requires_grad_()
    w = {"emb": mk(vocab, d), "wx": mk(d, 4 * d), "wh": mk(d, 4 * d), "b": torch.zeros(4 * d), "out": mk(d, vocab)}
    w["b"][d:2 * d] = 1.0
    w["b"].requires_grad_()
    return w


def unroll(w: Weights, ids: Tensor, state: State) -> Tuple[Tensor, State]:
    h, c = state
    gx = w["emb"][ids] @ w["wx"] + w["b"]
    hs = []
    for t in range(ids.size(1)):
        i, f, o, g = (gx[:, t] + h @ w["wh"]).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        hs.append(h)
    return torch.stack(hs, 1) @ w["out"], (h, c)


def zero_state(lanes: int, d: int) -> State:
    return torch.zeros(lanes, d), torch.zeros(lanes, d)


def bits(w: Weights, text: Tensor, d: int) -> float:
    state, total, n = zero_state(4, d), 0.0, 0
    with torch.no_grad():
        for x, y in streams(text, 4, 50):
            logits, state = unroll(w, x, state)
            total += torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum").item()
            n += y.numel()
    return total / n / math.log(2)


def main() -> None:
    torch.manual_seed(70)
    d, lanes, chunk = 32, 8, 16
    train, held = counter_text(4000, 1), counter_text(800, 2)
    w = init(10, d)
    opt = torch.optim.Adam(w.values(), lr=5e-3)
    for epoch in range(4):
        state = zero_state(lanes, d)
        for x, y in streams(train, lanes, chunk):
            state = tuple(s.detach() for s in state)
            logits, state = unroll(w, x, state)
            loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), y)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(w.values(), 1.0)
            opt.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out bits/char {bits(w, held, d):.3f}")


if __name__ == "__main__":
    main()
