"""Fine-grained topic classification of token sequences with the Hugging Face Trainer."""

import os

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

VOCAB_SIZE = 120
NUM_LABELS = 4
SEQ_LEN = 16


class Topics(Dataset):
    """Each topic prefers its own words; the rest is filler."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, NUM_LABELS, size)
        tokens = rng.integers(40, VOCAB_SIZE, (size, SEQ_LEN))
        own = rng.integers(1, 10, (size, SEQ_LEN)) + 10 * self.labels[:, None]
        self.input_ids = np.where(rng.random((size, SEQ_LEN)) < 0.3, own, tokens)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {
            "input_ids": torch.tensor(self.input_ids[i]),
            "attention_mask": torch.ones(SEQ_LEN, dtype=torch.long),
            "labels": torch.tensor(int(self.labels[i])),
        }


def compute_metrics(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    seed = int(os.environ.get("SEED", "0"))
    set_seed(seed)
    config = BertConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=SEQ_LEN,
        num_labels=NUM_LABELS,
    )
    model = BertForSequenceClassification(config)
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=3e-3,
        weight_decay=0.01,
        warmup_steps=10,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        seed=seed,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Topics(800, seed + 1),
        eval_dataset=Topics(200, seed + 100),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    metrics = trainer.evaluate()
    print(f"***** final eval_accuracy = {metrics['eval_accuracy']:.4f} *****")


if __name__ == "__main__":
    main()
