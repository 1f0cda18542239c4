import random

GOOD = "great lovely superb tasty crisp solid happy charming bright smooth".split()
BAD = "awful broken bland noisy slow dull sticky cheap faulty stale".split()
OTHER = [f"{a}{b}" for a in ("box", "cord", "cup", "lid", "case", "knob") for b in ("", "es", "let", "ish", "top")]


def reviews(n, seed):
    rnd = random.Random(seed)
    rows = []
    for _ in range(n):
        label = rnd.random() < 0.5
        words = rnd.choices(GOOD if label else BAD, k=3) + rnd.choices(OTHER, k=8)
        words += rnd.choices(GOOD + BAD, k=1)
        rnd.shuffle(words)
        rows.append((" ".join(words), int(label)))
    return rows
