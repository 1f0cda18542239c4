import numpy as np
import torch


def topic_corpus(n_docs=300, doc_len=30, vocab=200, topics=8, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(vocab, 0.05), size=topics)
    docs = []
    for _ in range(n_docs):
        k = rng.integers(topics)
        docs.append(rng.choice(vocab, size=doc_len, p=base[k]))
    return np.stack(docs)


def skipgram_pairs(docs, window=3):
    left, right = [], []
    for off in range(1, window + 1):
        left.append(docs[:, :-off].reshape(-1))
        right.append(docs[:, off:].reshape(-1))
    a, b = np.concatenate(left), np.concatenate(right)
    return torch.as_tensor(a), torch.as_tensor(b)
