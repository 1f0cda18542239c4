"""Fine-tune a small encoder on star reviews with the Hugging Face Trainer.

    python train.py --model prajjwal1/bert-mini --lr 2e-5     (on the cluster)
    python train.py                                           (smoke test from a random config)
"""
import argparse
import random
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import AutoModelForSequenceClassification, BertConfig, Trainer, TrainingArguments, set_seed

GOOD, BAD = list(range(10, 40)), list(range(40, 70))
CLS, SEP = 1, 2


class Reviews(Dataset):
    def __init__(self, n, seed, length=24):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = r.randrange(2)
            words = [r.choice((GOOD, BAD)[label]) if r.random() < 0.35 else r.randrange(70, 200) for _ in range(length)]
            self.rows.append({"input_ids": [CLS, *words, SEP], "attention_mask": [1] * (length + 2), "labels": label})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {k: torch.tensor(v) for k, v in self.rows[i].items()}


def build(name):
    if name:
        return AutoModelForSequenceClassification.from_pretrained(name, num_labels=2, torch_dtype=torch.bfloat16)
    cfg = BertConfig(vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2)
    return AutoModelForSequenceClassification.from_config(cfg, torch_dtype=torch.bfloat16)


def metrics(p):
    return {"accuracy": float((np.argmax(p.predictions, -1) == p.label_ids).mean())}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default=None)
    ap.add_argument("--lr", type=float, default=2e-5)
    ap.add_argument("--epochs", type=float, default=1)
    a = ap.parse_args()
    set_seed(123)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, learning_rate=a.lr, num_train_epochs=a.epochs, per_device_train_batch_size=16,
            warmup_steps=5, lr_scheduler_type="linear", weight_decay=0.01,
            eval_strategy="epoch", save_strategy="no", logging_steps=10, report_to=[], seed=123,
        )
        trainer = Trainer(model=build(a.model), args=args, train_dataset=Reviews(400, 1), eval_dataset=Reviews(100, 2), compute_metrics=metrics)
        trainer.train()
        print(trainer.evaluate())


if __name__ == "__main__":
    main()
