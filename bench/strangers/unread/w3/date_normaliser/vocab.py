class Vocab:
    SPECIALS = ("<s>", "</s>", "<pad>")

    def __init__(self, texts):
        chars = sorted({c for t in texts for c in t})
        self.itos = list(self.SPECIALS) + chars
        self.stoi = {c: i for i, c in enumerate(self.itos)}
        self.bos, self.eos, self.pad = (self.stoi[s] for s in self.SPECIALS)

    def __len__(self):
        return len(self.itos)

    def encode(self, text):
        return [self.bos, *(self.stoi[c] for c in text), self.eos]
