"""Masked pretraining on product codes with a tiny BERT."""
import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

PAD, MASK, FIRST, SYMBOLS, LENGTH = 0, 1, 2, 10, 10


class Codes(Dataset):
    """Each symbol is the previous one plus a step that belongs to the code."""

    def __init__(self, n, seed, fixed_masks):
        rng = np.random.default_rng(seed)
        start, step = rng.integers(0, SYMBOLS, n), rng.integers(1, 3, n)
        self.rows = torch.tensor((start[:, None] + step[:, None] * np.arange(LENGTH)) % SYMBOLS + FIRST)
        self.fixed = torch.Generator().manual_seed(seed) if fixed_masks else None
        self.masks = self.draw((n, LENGTH)) if fixed_masks else None

    def draw(self, shape):
        return torch.rand(shape, generator=self.fixed) < 0.25

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        hide = self.masks[i] if self.masks is not None else self.draw((LENGTH,))
        return {
            "input_ids": torch.where(hide, torch.full_like(row, MASK), row),
            "attention_mask": torch.ones_like(row),
            "labels": torch.where(hide, row, torch.full_like(row, -100)),
        }


def masked_accuracy(out):
    guess = out.predictions.argmax(-1)
    scored = out.label_ids != -100
    return {"masked_accuracy": float((guess[scored] == out.label_ids[scored]).mean())}


def main():
    set_seed(1)
    config = BertConfig(vocab_size=SYMBOLS + FIRST, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=LENGTH, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0, initializer_range=0.1, pad_token_id=PAD)
    model = BertForMaskedLM(config)  # output embeddings are tied to the input embeddings
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(output_dir=out, num_train_epochs=7, learning_rate=3e-3, warmup_steps=20,
                                 per_device_train_batch_size=32, per_device_eval_batch_size=200,
                                 eval_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True,
                                 logging_strategy="no", use_cpu=True)
        trainer = Trainer(model=model, args=args, train_dataset=Codes(1000, 1, fixed_masks=False),
                          eval_dataset=Codes(200, 2, fixed_masks=True), compute_metrics=masked_accuracy)
        trainer.train()
        first, second = trainer.evaluate(), trainer.evaluate()
    print("masked accuracy", first["eval_masked_accuracy"], "again", second["eval_masked_accuracy"])


if __name__ == "__main__":
    main()
