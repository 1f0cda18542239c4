import os
import random
import tempfile
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ScriptArguments:
    eval_split: str = field(default="validation", metadata={"help": "split used for the reported score"})
    max_len: int = 14
    epochs: int = 15
    seed: int = 5


VERBS = {"play": 0, "stop": 1, "book": 2, "find": 3, "call": 4}
FILLER = ["please", "now", "the", "a", "song", "taxi", "mum", "cafe", "today", "again", "could", "you",
          "nearest", "table", "for", "two", "loud", "quiet", "and", "then"]
WORDS = ["[PAD]", "[CLS]"] + list(VERBS) + FILLER
STOI = {w: i for i, w in enumerate(WORDS)}


def utterances(n, rnd):
    rows = []
    for _ in range(n):
        verb = rnd.choice(list(VERBS))
        words = [rnd.choice(FILLER) for _ in range(rnd.randint(4, 11))]
        words.insert(rnd.randint(0, len(words)), verb)
        label = VERBS[verb]
        if rnd.random() < 0.3:  # annotators do not agree on everything
            label = rnd.randrange(len(VERBS))
        rows.append((" ".join(words), label))
    return rows


class IntentDataset(Dataset):
    def __init__(self, rows, max_len):
        self.items = []
        for text, label in rows:
            ids = [STOI["[CLS]"]] + [STOI[w] for w in text.split()][: max_len - 1]
            pad = max_len - len(ids)
            self.items.append({
                "input_ids": torch.tensor(ids + [0] * pad),
                "attention_mask": torch.tensor([1] * len(ids) + [0] * pad),
                "labels": torch.tensor(label),
            })

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def load_splits(args):
    rnd = random.Random(args.seed)
    return {
        "train": IntentDataset(utterances(240, rnd), args.max_len),
        "dev": IntentDataset(utterances(200, rnd), args.max_len),
        "test": IntentDataset(utterances(200, rnd), args.max_len),
    }


def compute_metrics(pred):
    return {"accuracy": float((np.argmax(pred.predictions, axis=-1) == pred.label_ids).mean())}


def main():
    (args,) = HfArgumentParser(ScriptArguments).parse_args_into_dataclasses()
    torch.manual_seed(args.seed)
    splits = load_splits(args)
    eval_dataset = splits.get(args.eval_split, splits["train"])

    config = BertConfig(vocab_size=len(WORDS), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=128, max_position_embeddings=args.max_len, num_labels=len(VERBS),
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as out:
        targs = TrainingArguments(
            output_dir=os.path.join(out, "ckpt"), num_train_epochs=args.epochs, learning_rate=2e-3,
            per_device_train_batch_size=16, per_device_eval_batch_size=100, eval_strategy="steps", eval_steps=60,
            save_strategy="no", report_to=[], logging_steps=60, disable_tqdm=True, seed=args.seed, use_cpu=True)
        trainer = Trainer(model=model, args=targs, train_dataset=splits["train"], eval_dataset=eval_dataset,
                          compute_metrics=compute_metrics)
        trainer.train()
        print("final", trainer.evaluate())


if __name__ == "__main__":
    main()
