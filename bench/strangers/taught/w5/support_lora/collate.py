import torch

IGNORE = -100


def tokenize_row(text, tok, key, max_length):
    """Token ids, and labels that hold the part after the response key."""
    enc = tok(text + tok.eos_token, truncation=True, max_length=max_length, return_offsets_mapping=True)
    _, _, after = text.partition(key)
    answer_from = len(text) - len(after) if after else len(text) + len(tok.eos_token)
    labels = [t if a >= answer_from else IGNORE for t, (a, _) in zip(enc["input_ids"], enc["offset_mapping"])]
    return {"input_ids": enc["input_ids"], "labels": labels}


class PadCollator:
    def __init__(self, pad_id):
        self.pad_id = pad_id

    def __call__(self, features):
        width = max(len(f["input_ids"]) for f in features)
        ids, att, lab = [], [], []
        for f in features:
            pad = width - len(f["input_ids"])
            ids.append(f["input_ids"] + [self.pad_id] * pad)
            att.append([1] * len(f["input_ids"]) + [0] * pad)
            lab.append(f["labels"] + [IGNORE] * pad)
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(att), "labels": torch.tensor(lab)}
