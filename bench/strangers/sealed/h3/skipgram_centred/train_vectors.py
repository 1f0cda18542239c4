import argparse
import time

import torch

from corpus import skipgram_pairs, topic_corpus
from embedding import SkipGram


def neighbours(model, word, k=5):
    table = torch.nn.functional.normalize(model.words.table.weight.detach(), dim=-1)
    return (table @ table[word]).topk(k + 1).indices[1:].tolist()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=24)
    ap.add_argument("--vocab", type=int, default=200)
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--batch", type=int, default=512)
    ap.add_argument("--negatives", type=int, default=4)
    args = ap.parse_args()

    torch.manual_seed(0)
    word, ctx = skipgram_pairs(topic_corpus(vocab=args.vocab))
    model = SkipGram(args.vocab, args.dim)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
    model.train()
    tic, acc = time.time(), 0.0
    for step in range(1, args.steps + 1):
        pick = torch.randint(len(word), (args.batch,))
        neg = torch.randint(args.vocab, (args.batch, args.negatives))
        loss = model(word[pick], ctx[pick], neg)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        acc += loss.item()
        if step % 50 == 0:
            ms = 1000 * (time.time() - tic) / 50
            print(f"step {step:4d} loss {acc / 50:.4f}  {ms:.1f} ms/step")
            tic, acc = time.time(), 0.0
    model.eval()
    for w in (3, 10, 42):
        print("nearest to", w, neighbours(model, w))


if __name__ == "__main__":
    main()
