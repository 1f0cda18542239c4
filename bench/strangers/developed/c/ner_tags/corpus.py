import random

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
FIRST = "anna bert carla david emil fatma".split()
LAST = "adler brandt cohen demir evans".split()
PLACE = "berlin lima oslo quito rabat turin".split()
VERB = "visited left likes saw met".split()
FILL = "yesterday today again quietly often".split()


def sentence(rng):
    words, tags = [rng.choice(FIRST)], ["B-PER"]
    if rng.random() < 0.6:
        words.append(rng.choice(LAST)); tags.append("I-PER")
    words.append(rng.choice(VERB)); tags.append("O")
    words.append(rng.choice(PLACE)); tags.append("B-LOC")
    for _ in range(rng.randrange(4)):
        words.append(rng.choice(FILL)); tags.append("O")
    return words, tags


def corpus(n, seed):
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(n)]


class Vocab:
    PAD, UNK = 0, 1

    def __init__(self, sentences):
        self.ids = {}
        for words, _ in sentences:
            for w in words:
                self.ids.setdefault(w, len(self.ids) + 2)

    def __len__(self):
        return len(self.ids) + 2

    def encode(self, words):
        return [self.ids.get(w, self.UNK) for w in words]
