"""Synthetic English from a small phrase-structure grammar with number agreement."""
import numpy as np
import torch

NOUNS = {"sg": "dog cat farmer child teacher robot bird singer".split(),
         "pl": "dogs cats farmers children teachers robots birds singers".split()}
TRANS = {"sg": "sees likes chases helps follows".split(),
         "pl": "see like chase help follow".split()}
INTRANS = {"sg": "sleeps runs sings waits".split(),
           "pl": "sleep run sing wait".split()}
DETS = {"sg": "the a this every".split(), "pl": "the some these many".split()}
ADJS = "old small red happy quiet".split()
PREPS = "near behind with".split()
ADVS = "today often slowly here".split()


class Grammar:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, words):
        return words[self.rng.integers(len(words))]

    def np_(self, num, depth=0):
        out = [self.pick(DETS[num])]
        if self.rng.random() < 0.3:
            out.append(self.pick(ADJS))
        out.append(self.pick(NOUNS[num]))
        if depth == 0 and self.rng.random() < 0.25:
            out += [self.pick(PREPS)] + self.np_(self.pick(["sg", "pl"]), depth + 1)
        return out

    def sentence(self):
        num = self.pick(["sg", "pl"])
        out = self.np_(num)
        if self.rng.random() < 0.6:
            out += [self.pick(TRANS[num])] + self.np_(self.pick(["sg", "pl"]), 1)
        else:
            out.append(self.pick(INTRANS[num]))
            if self.rng.random() < 0.5:
                out.append(self.pick(ADVS))
        return out + ["<eos>"]


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, seed=2024, sizes=(4500, 500, 500)):
        grammar = Grammar(np.random.default_rng(seed))
        self.dictionary = Dictionary()
        self.train, self.valid, self.test = (self.tokenize(grammar, n) for n in sizes)

    def tokenize(self, grammar, n_sentences):
        ids = []
        for _ in range(n_sentences):
            ids.extend(self.dictionary.add_word(w) for w in grammar.sentence())
        return torch.tensor(ids, dtype=torch.int64)
