UNK, PAD, BOS, EOS = "<unk>", "<pad>", "<s>", "</s>"
SPECIALS = [UNK, PAD, BOS, EOS]


class Vocab:
    def __init__(self, strings):
        self.itos = SPECIALS + sorted({c for s in strings for c in s})
        self.stoi = {c: i for i, c in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, s):
        unk = self.stoi[UNK]
        return [self.stoi[BOS]] + [self.stoi.get(c, unk) for c in s] + [self.stoi[EOS]]

    def decode(self, ids):
        out = []
        for i in ids:
            if self.itos[i] == EOS:
                break
            if self.itos[i] not in SPECIALS:
                out.append(self.itos[i])
        return "".join(out)
