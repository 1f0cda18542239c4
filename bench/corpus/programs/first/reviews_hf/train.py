"""Fine-grained sentiment of short reviews with a tiny BERT trained from scratch."""

import os
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

GOOD = ["great", "lovely", "superb", "crisp", "friendly", "fresh"]
BAD = ["awful", "bland", "rude", "soggy", "dirty", "slow"]
NEUTRAL = ["food", "service", "table", "waiter", "soup", "menu", "room", "music", "place", "bill"]
LINK = ["the", "was", "and", "very", "quite", "but", "really", "a"]
VOCAB = ["[PAD]", "[CLS]", "[SEP]", "not", *GOOD, *BAD, *NEUTRAL, *LINK]
TOKEN_ID = {token: i for i, token in enumerate(VOCAB)}
MAX_LENGTH = 16


def write_review(rng):
    """A review of two or three opinions; "not" turns an opinion round."""
    words, score = [], 0
    while score == 0:
        words, score = [], 0
        for _ in range(rng.choice([2, 3])):
            positive = rng.random() < 0.5
            negated = rng.random() < 0.2
            words += ["the", rng.choice(NEUTRAL), "was"]
            words += ["not"] if negated else []
            words.append(rng.choice(GOOD if positive else BAD))
            score += 1 if positive != negated else -1
    return words, int(score > 0)


class ReviewDataset(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.samples = [write_review(rng) for _ in range(size)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        words, label = self.samples[index]
        ids = [
            TOKEN_ID["[CLS]"],
            *[TOKEN_ID[w] for w in words][: MAX_LENGTH - 2],
            TOKEN_ID["[SEP]"],
        ]
        padding = MAX_LENGTH - len(ids)
        return {
            "input_ids": torch.tensor(ids + [TOKEN_ID["[PAD]"]] * padding),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * padding),
            "labels": torch.tensor(label),
        }


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    predictions = np.argmax(logits, axis=-1)
    return {"accuracy": float((predictions == labels).mean())}


def main():
    seed = int(os.environ.get("SEED", "0"))
    set_seed(seed)

    config = BertConfig(
        vocab_size=len(VOCAB),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_LENGTH,
        num_labels=2,
        initializer_range=0.05,
    )
    model = BertForSequenceClassification(config)

    training_args = TrainingArguments(
        output_dir="results",
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        learning_rate=3e-3,
        lr_scheduler_type="linear",
        warmup_steps=20,
        weight_decay=0.01,
        logging_steps=20,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        seed=seed,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=model,
        args=training_args,
        train_dataset=ReviewDataset(1600, seed),
        eval_dataset=ReviewDataset(320, seed + 1_000),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    trainer.save_model("results/final")


if __name__ == "__main__":
    main()
