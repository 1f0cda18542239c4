import random

import torch

SUBJ = "the cat,a dog,my sister,the old man,our teacher,the king".split(",")
VERB = "sees,likes,finds,follows,paints,hears".split(",")
OBJ = "a bird,the river,his house,the moon,some bread,an apple".split(",")


class Dictionary:
    def __init__(self):
        self.word2idx = {}
        self.idx2word = []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, seed=0):
        self.dictionary = Dictionary()
        rng = random.Random(seed)
        self.train = self.tokenize(rng, 3000)
        self.valid = self.tokenize(rng, 300)

    def tokenize(self, rng, n):
        ids = []
        for _ in range(n):
            line = f"{rng.choice(SUBJ)} {rng.choice(VERB)} {rng.choice(OBJ)}".split() + ["<eos>"]
            ids += [self.dictionary.add_word(w) for w in line]
        return torch.tensor(ids, dtype=torch.int64)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)
