import numpy as np
import torch
from torch import nn
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

from modeling import Tagger, TaggerConfig

VOCAB, DIM, TAGS, LEN = 100, 32, 6, 15


def corpus(n, seed, vectors, directions):
    g = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(n):
        k = int(torch.randint(LEN // 2, LEN + 1, (1,), generator=g))
        ids = torch.zeros(LEN, dtype=torch.long)
        ids[:k] = torch.randint(1, VOCAB, (k,), generator=g)
        tags = (vectors[ids[:k]].mean(0) @ directions > 0.1).float()
        rows.append({"input_ids": ids, "labels": tags})
    return rows


class FocalTrainer(Trainer):
    """Down-weights easy tags; two learning rates."""

    def __init__(self, *a, gamma=1.0, **kw):
        super().__init__(*a, **kw)
        self.gamma = gamma

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs["labels"]
        out = model(input_ids=inputs["input_ids"])
        bce = nn.functional.binary_cross_entropy_with_logits(out.logits, labels, reduction="none")
        with torch.no_grad():
            p = out.logits.sigmoid()
            hard = (labels - p).abs() ** self.gamma
        loss = (hard * bce).mean()
        return (loss, out) if return_outputs else loss

    def create_optimizer(self, *args, **kwargs):
        if self.optimizer is None:
            m = self.model
            self.optimizer = torch.optim.AdamW([
                {"params": m.classify.parameters(), "lr": self.args.learning_rate},
                {"params": m.attend.parameters(), "lr": self.args.learning_rate * 5},
            ], weight_decay=0.0)
        return self.optimizer


def metrics(p):
    pred = p.predictions > 0
    gold = p.label_ids > 0.5
    f1 = 2 * (pred & gold).sum() / max(pred.sum() + gold.sum(), 1)
    return {"micro_f1": float(f1), "exact": float((pred == gold).all(1).mean())}


def main():
    set_seed(10)
    g = torch.Generator().manual_seed(0)
    vectors, directions = torch.randn(VOCAB, DIM, generator=g), torch.randn(DIM, TAGS, generator=g)
    vectors[0] = 0
    train, dev, test = (corpus(n, s, vectors, directions) for n, s in ((600, 1), (150, 2), (150, 3)))

    args = TrainingArguments(
        output_dir="/tmp/hf-tags", num_train_epochs=8, per_device_train_batch_size=32, learning_rate=3e-3,
        eval_strategy="epoch", save_strategy="epoch", save_total_limit=1, load_best_model_at_end=True,
        metric_for_best_model="micro_f1", lr_scheduler_type="cosine", warmup_steps=10, report_to=[], use_cpu=True,
        disable_tqdm=True, seed=10, logging_strategy="no")
    trainer = FocalTrainer(
        model=Tagger(TaggerConfig(VOCAB, DIM, TAGS), vectors), args=args, train_dataset=train, eval_dataset=dev,
        compute_metrics=metrics, callbacks=[EarlyStoppingCallback(3)], gamma=1.0)
    trainer.train()
    print(trainer.evaluate(test, metric_key_prefix="test"))


if __name__ == "__main__":
    main()
