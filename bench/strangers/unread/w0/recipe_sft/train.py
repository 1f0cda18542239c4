"""Fine-tune a small GPT-2 on question/answer pairs, loss on the answers only."""
import random
import re

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

PROMPT = "### Question:\n{q}\n\n### Answer:\n{a}<eos>"
ANSWER_MARKER = "### Answer:\n"
PIECES = re.compile(r"<eos>|\s?\w+|\s?[^\w\s<]+|\s+")


class PieceTokenizer:
    """Word pieces with the preceding blank glued on, the way byte-level BPE does it."""

    def __init__(self):
        self.ids = {"<pad>": 0, "<unk>": 1}

    def fit(self, texts):
        for text in texts:
            for piece in PIECES.findall(text):
                self.ids.setdefault(piece, len(self.ids))
        return self

    def encode(self, text):
        return [self.ids.get(p, self.ids["<unk>"]) for p in PIECES.findall(text)]

    def __len__(self):
        return len(self.ids)


def make_pairs(seed):
    needs = {"soup": "water, leek", "bread": "flour, yeast", "cake": "flour, sugar", "curry": "rice, chili",
             "stew": "beef, beer", "pie": "butter, apple"}
    asks = ["What do I need for {} for {} people?", "Please list what goes into {} if {} guests come.",
            "Ingredients of {}, {} plates?"]
    pairs = [(ask.format(food, k), f"You need {needs[food]} for {k}.") for food in needs for ask in asks for k in range(2, 16)]
    random.Random(seed).shuffle(pairs)
    return pairs


class ChatSet(Dataset):
    def __init__(self, pairs, tok):
        self.rows = [tok.encode(PROMPT.format(q=q, a=a)) for q, a in pairs]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i]}


class AnswerOnlyCollator:
    def __init__(self, tok):
        self.marker = tok.encode(ANSWER_MARKER)

    def _start_of_answer(self, ids):
        m = self.marker
        for i in range(len(ids) - len(m) + 1):
            if ids[i:i + len(m)] == m:
                return i + len(m)
        return len(ids)

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        batch = {"input_ids": [], "attention_mask": [], "labels": []}
        for f in features:
            ids = f["input_ids"]
            gap = longest - len(ids)
            start = self._start_of_answer(ids)
            batch["input_ids"].append(ids + [0] * gap)
            batch["attention_mask"].append([1] * len(ids) + [0] * gap)
            batch["labels"].append([-100] * start + ids[start:] + [-100] * gap)
        return {k: torch.tensor(v) for k, v in batch.items()}


if __name__ == "__main__":
    set_seed(3)
    pairs = make_pairs(seed=1)
    train_pairs, eval_pairs = pairs[:210], pairs[210:]
    tok = PieceTokenizer().fit([PROMPT.format(q=q, a=a) for q, a in train_pairs] + [ANSWER_MARKER])
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=48, n_layer=2, n_head=4,
                                       bos_token_id=0, eos_token_id=tok.ids["<eos>"]))
    args = TrainingArguments(output_dir="out", per_device_train_batch_size=16, num_train_epochs=2, learning_rate=2e-3,
                             lr_scheduler_type="cosine", logging_steps=5, eval_strategy="epoch", save_strategy="no",
                             report_to="none", disable_tqdm=True, use_cpu=not torch.cuda.is_available())
    trainer = Trainer(model=model, args=args, train_dataset=ChatSet(train_pairs, tok),
                      eval_dataset=ChatSet(eval_pairs, tok), data_collator=AnswerOnlyCollator(tok))
    trainer.train()
    print(trainer.evaluate())
