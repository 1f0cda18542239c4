from dataclasses import dataclass, field

SPECIALS = ("<unk>", "<pad>", "<bos>", "<eos>")


@dataclass
class CharVocab:
    symbols: list[str] = field(default_factory=lambda: list(SPECIALS))

    @classmethod
    def from_texts(cls, texts):
        return cls(list(SPECIALS) + sorted({c for t in texts for c in t}))

    def __post_init__(self):
        self.lookup = {s: i for i, s in enumerate(self.symbols)}
        self.unk, self.pad, self.bos, self.eos = (self.lookup[s] for s in SPECIALS)

    def encode(self, text):
        return [self.bos] + [self.lookup.get(c, self.unk) for c in text] + [self.eos]

    def __len__(self):
        return len(self.symbols)
