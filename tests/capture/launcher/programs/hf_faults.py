"""Hugging Face Trainer runs with a fault each; the first argument chooses."""

import os
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


def examples(size, classes, vocabulary):
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, classes, (size,), generator=generator)
    tokens = torch.randint(5, vocabulary, (size, 12), generator=generator)
    tokens[:, 0] = labels + 1
    return [
        {"input_ids": row, "attention_mask": torch.ones(12, dtype=torch.long), "labels": label}
        for row, label in zip(tokens, labels, strict=True)
    ]


def main():
    fault = sys.argv[1]
    set_seed(3)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=3,
    )
    model = BertForSequenceClassification(config)
    if fault == "frozen":
        for parameter in model.parameters():
            parameter.requires_grad = False
        model.classifier.bias.requires_grad = True
    classes = 4 if fault == "label" else 3
    vocabulary = 65 if fault == "token" else 64
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=120,
            per_device_train_batch_size=4,
            learning_rate=3.0 if fault == "lr" else 2e-3,
            max_grad_norm=0.0 if fault == "lr" else 1.0,
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model, args=arguments, train_dataset=examples(500, classes, vocabulary)
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"step {entry['step']} loss {entry['loss']:.6f}")


if __name__ == "__main__":
    main()
