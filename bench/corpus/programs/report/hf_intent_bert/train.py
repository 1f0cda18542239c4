#!/usr/bin/env python
"""Fine-grained intent classifier: a tiny BERT trained from scratch with the HF Trainer."""
import logging
import os
import sys
from dataclasses import dataclass

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from synthetic import N_INTENTS, PAD, VOCAB_SIZE, IntentDataset

logger = logging.getLogger("intent")

SEED = int(os.environ.get("SEED", "0"))


@dataclass
class PadCollator:
    """Pads to the longest sequence of the batch (there is no tokenizer to do it for us)."""

    pad_id: int = PAD

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids = torch.full((len(features), longest), self.pad_id, dtype=torch.long)
        mask = torch.zeros((len(features), longest), dtype=torch.long)
        for row, f in enumerate(features):
            n = len(f["input_ids"])
            ids[row, :n] = torch.tensor(f["input_ids"])
            mask[row, :n] = 1
        labels = torch.tensor([f["labels"] for f in features])
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = np.argmax(logits, axis=-1)
    per_class = [float((preds[labels == c] == c).mean()) for c in range(N_INTENTS)]
    return {
        "accuracy": float((preds == labels).mean()),
        "worst_class_recall": min(per_class),
    }


def build_model():
    config = BertConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=32,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        pad_token_id=PAD,
        num_labels=N_INTENTS,
    )
    return BertForSequenceClassification(config)


def main():
    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    set_seed(SEED)

    train_ds = IntentDataset(2048, seed=SEED + 1)
    eval_ds = IntentDataset(512, seed=31337)
    model = build_model()
    logger.info("model has %d parameters", model.num_parameters())

    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        learning_rate=2e-3,
        weight_decay=0.01,
        warmup_steps=25,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        eval_strategy="epoch",
        logging_strategy="steps",
        logging_steps=32,
        save_strategy="no",
        report_to="none",
        seed=SEED,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=train_ds,
        eval_dataset=eval_ds,
        data_collator=PadCollator(),
        compute_metrics=compute_metrics,
    )

    before = trainer.evaluate()
    logger.info("before training: accuracy %.4f", before["eval_accuracy"])

    trainer.train()

    final = trainer.evaluate()
    trainer.save_model("out/final")
    logger.info("worst class recall %.4f", final["eval_worst_class_recall"])
    print(f"final eval loss {final['eval_loss']:.4f} final accuracy {final['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
