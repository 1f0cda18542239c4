class Vocab:
    def __init__(self, items, specials=()):
        self.itos = list(specials) + sorted(set(items))
        self.stoi = {s: i for i, s in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def __getitem__(self, s):
        return self.stoi.get(s, self.stoi.get("<unk>"))

    @property
    def pad(self):
        return self.stoi["<pad>"]
