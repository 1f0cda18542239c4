"""A tiny GPT-2 language model with the Hugging Face Trainer and gradient accumulation."""

import os
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)


def sequences(size, seed):
    """Return counting sequences with a random start and stride."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(0, 40, (size, 1), generator=generator)
    stride = torch.randint(1, 4, (size, 1), generator=generator)
    tokens = (start + stride * torch.arange(16)) % 50
    return [{"input_ids": row, "labels": row.clone()} for row in tokens]


def main():
    set_seed(5)
    config = GPT2Config(
        vocab_size=50,
        n_positions=16,
        n_embd=32,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=60,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            learning_rate=3e-3,
            lr_scheduler_type="cosine",
            warmup_steps=5,
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=sequences(512, 0))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print(f"step {entry['step']} loss {entry['loss']!r} grad_norm {entry['grad_norm']!r}")


if __name__ == "__main__":
    main()
