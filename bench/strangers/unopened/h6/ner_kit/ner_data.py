import random

PER, LOC = "anna boris clara david emma felix".split(), "berlin oslo lima cairo quito dakar".split()
ORG = "acme globex initech umbrella".split()
O = "went to with met in at works for from likes the and yesterday today again".split()


def sentences(n, seed):
    rng = random.Random(seed)
    data = []
    for _ in range(n):
        words, tags = [], []
        for _ in range(rng.choice([3, 5, 6, 8, 24])):
            kind = rng.random()
            if kind < 0.15:
                words.append(rng.choice(PER)); tags.append("PER")
            elif kind < 0.3:
                words.append(rng.choice(LOC)); tags.append("LOC")
            elif kind < 0.38:
                words.append(rng.choice(ORG)); tags.append("ORG")
                words.append("inc"); tags.append("ORG")
            else:
                words.append(rng.choice(O)); tags.append("O")
        data.append((words, tags))
    return data
