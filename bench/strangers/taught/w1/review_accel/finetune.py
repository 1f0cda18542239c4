#!/usr/bin/env python
"""Classify product reviews (synthetic token ids here) with a small BERT, using Accelerate."""
import argparse
import logging

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
logger = logging.getLogger("finetune")


class Reviews(Dataset):
    def __init__(self, n, vocab=300, length=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(5, vocab, (n, length), generator=g)
        self.labels = ((self.ids < 60).sum(1) >= 5).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones_like(self.ids[i]), "labels": self.labels[i]}


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--per_device_train_batch_size", type=int, default=8)
    p.add_argument("--gradient_accumulation_steps", type=int, default=8)
    p.add_argument("--num_train_epochs", type=int, default=2)
    p.add_argument("--learning_rate", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=13)
    return p.parse_args()


def main():
    args = parse_args()
    set_seed(args.seed)
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, cpu=True)

    config = BertConfig(vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=32, num_labels=2)
    model = BertForSequenceClassification(config)
    train_dl = DataLoader(Reviews(1024), batch_size=args.per_device_train_batch_size, shuffle=True)
    eval_dl = DataLoader(Reviews(256, seed=1), batch_size=64)

    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01)
    model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)

    effective = args.per_device_train_batch_size * accelerator.num_processes * args.gradient_accumulation_steps
    logger.info("total train batch size = %d", effective)

    for epoch in range(args.num_train_epochs):
        model.train()
        total = 0.0
        for step, batch in enumerate(train_dl):
            outputs = model(**batch)
            loss = outputs.loss
            total += loss.detach().float()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        model.eval()
        hits = n = 0
        for batch in eval_dl:
            with torch.no_grad():
                logits = model(**batch).logits
            preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            hits += (preds == refs).sum().item()
            n += len(refs)
        logger.info("epoch %d  train loss %.4f  accuracy %.4f", epoch, total.item() / len(train_dl), hits / n)

    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model)


if __name__ == "__main__":
    main()
