"""A tiny BERT classifier with the Hugging Face Trainer."""

import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


class Sentences(Dataset):
    """Sentences whose class is the token that stands first."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, 60, (size, 12), generator=generator)
        self.labels = torch.randint(0, 3, (size,), generator=generator)
        self.tokens[:, 0] = self.labels + 60
        self.lengths = torch.randint(6, 13, (size,), generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        mask = (torch.arange(12) < self.lengths[index]).long()
        return {
            "input_ids": self.tokens[index] * mask,
            "attention_mask": mask,
            "labels": self.labels[index],
        }


def main():
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
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=4,
            per_device_train_batch_size=16,
            learning_rate=2e-3,
            warmup_steps=10,
            logging_steps=10,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=Sentences(400, 0),
            eval_dataset=Sentences(100, 1),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"step {entry['step']} loss {entry['loss']!r} grad_norm {entry['grad_norm']!r}")
        if "eval_loss" in entry:
            print(f"step {entry['step']} eval_loss {entry['eval_loss']!r}")


if __name__ == "__main__":
    main()
