import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

NUM = "zero one two three four five six seven eight nine".split()


def build_tokenizer():
    words = ["<pad>", "<unk>", "</s>", "Question", "Answer", ":", "plus", "minus", "what", "is", "?", "negative"] + NUM \
        + [str(i) for i in range(19)]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", eos_token="</s>",
                                   padding_side="right")


def make_pairs(seed, held_out=0.2):
    """Every sum and difference of two digits once, cut into (train, eval) without overlap."""
    facts = [("plus", a, b, a + b) for a in range(10) for b in range(10)]
    facts += [("minus", a, b, a - b) for a in range(10) for b in range(a + 1)]
    random.Random(seed).shuffle(facts)
    pairs = [(f"Question : what is {NUM[a]} {op} {NUM[b]} ? Answer :", f"{c} </s>") for op, a, b, c in facts]
    cut = int(len(pairs) * held_out)
    return pairs[cut:], pairs[:cut]


class InstructionSet(Dataset):
    """Tokenizes once; loss only on the answer."""

    def __init__(self, pairs, tok, max_length=24):
        enc = dict(padding="max_length", truncation=True, max_length=max_length, return_tensors="pt")
        full = tok([p + " " + a for p, a in pairs], **enc)
        prompts = tok([p for p, _ in pairs], **enc)
        self.input_ids, self.attention_mask = full["input_ids"], full["attention_mask"]
        self.labels = self.input_ids.clone()
        for row, ids in zip(self.labels, prompts["input_ids"]):
            row[: len(ids)] = -100
        self.labels[self.attention_mask == 0] = -100

    def __len__(self):
        return len(self.input_ids)

    def __getitem__(self, i):
        return {"input_ids": self.input_ids[i], "attention_mask": self.attention_mask[i], "labels": self.labels[i]}
