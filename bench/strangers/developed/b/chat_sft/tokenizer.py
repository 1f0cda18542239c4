"""Whitespace tokenizer with a fixed vocabulary; mirrors the interface of the big ones closely enough for us."""


class WordTokenizer:
    pad_token, bos_token, eos_token, unk_token = "<pad>", "<s>", "</s>", "<unk>"

    def __init__(self, texts):
        words = sorted({w for t in texts for w in t.split()})
        self.itos = [self.pad_token, self.bos_token, self.eos_token, self.unk_token] + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}
        self.pad_token_id, self.bos_token_id, self.eos_token_id, self.unk_token_id = range(4)

    def __len__(self):
        return len(self.itos)

    def encode(self, text, add_special_tokens=True):
        ids = [self.stoi.get(w, self.unk_token_id) for w in text.split()]
        return [self.bos_token_id] + ids if add_special_tokens else ids

    def decode(self, ids):
        return " ".join(self.itos[i] for i in ids if i > 2)
