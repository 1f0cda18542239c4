import random

GOOD = "great lovely superb tasty warm kind fresh perfect".split()
BAD = "awful bland cold rude stale broken noisy dirty".split()
FILL = "the food was and we had a table by window on monday with friends who said it very".split()
VOCAB = {w: i + 1 for i, w in enumerate(GOOD + BAD + FILL)}


def reviews(n, seed):
    rng = random.Random(seed)
    out = []
    for k in range(n):
        label = rng.randint(0, 1)
        words = [rng.choice(FILL) for _ in range(rng.randint(4, 40 if k % 2 else 18))]
        for _ in range(3):
            pool = GOOD if label == (rng.random() < 0.85) else BAD
            words.insert(rng.randrange(len(words)), rng.choice(pool))
        out.append(([VOCAB[w] for w in words], label))
    return out
