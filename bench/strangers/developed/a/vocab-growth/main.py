"""Continual language modelling: the second domain brings new words."""
import torch

from lm import NextWord
from session import Session


def chain(n_words, gen, sharp=4.0):
    return torch.softmax(sharp * torch.randn(n_words, n_words, generator=gen), 1)


def sample(trans, n, length, gen):
    seq = torch.randint(0, len(trans), (n, 1), generator=gen)
    for _ in range(length - 1):
        nxt = torch.multinomial(trans[seq[:, -1]], 1, generator=gen)
        seq = torch.cat([seq, nxt], 1)
    return seq


def main():
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(21)
    first, second = chain(20, gen), chain(32, gen)
    domains = {
        "news": (sample(first, 400, 10, gen), sample(first, 100, 10, gen)),
        "chat": (sample(second, 400, 10, gen), sample(second, 100, 10, gen)),
    }

    net = NextWord(20)
    run = Session(net, lr=5e-3)

    train, held = domains["news"]
    run.fit(train, epochs=6)
    print(f"news: perplexity {run.perplexity(held):.2f} (vocab 20)")

    train, held = domains["chat"]
    net.extend_vocab(12)
    print(f"chat: perplexity {run.perplexity(held):.2f} before (vocab 32)")
    for stage in range(3):
        run.fit(train, epochs=4)
        print(f"chat: perplexity {run.perplexity(held):.2f} after stage {stage + 1}")


if __name__ == "__main__":
    main()
