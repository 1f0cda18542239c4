import json


class WordTokenizer:
    PAD, BOS, EOS, UNK = range(4)

    def __init__(self, words):
        self.words = ["<pad>", "<s>", "</s>", "<unk>"] + sorted(words)
        self.index = {w: i for i, w in enumerate(self.words)}

    @classmethod
    def from_texts(cls, texts):
        return cls({w for t in texts for w in t.split()})

    def __len__(self):
        return len(self.words)

    def encode(self, text):
        return [self.BOS, *(self.index.get(w, self.UNK) for w in text.split()), self.EOS]

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids if i > 2)

    def dump(self, path):
        json.dump(self.words, open(path, "w"))
