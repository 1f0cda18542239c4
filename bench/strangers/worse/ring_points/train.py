"""Two-ring classification from crowd-sourced labels, with the Hugging Face Trainer."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

SEED = 0


class Rings(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        inner = rng.integers(0, 2, n)
        r = np.where(inner == 1, 0.6, 1.6) + 0.12 * rng.normal(size=n)
        a = rng.uniform(0, 2 * np.pi, n)
        self.x = torch.tensor(np.stack([r * np.cos(a), r * np.sin(a)], 1), dtype=torch.float32)
        votes = np.where(rng.random(n) < 0.2, 1 - inner, inner)
        self.y = torch.tensor(votes)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"points": self.x[i], "labels": self.y[i]}


class RingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(),
                                 nn.Linear(24, 2))

    def forward(self, points, labels=None):
        logits = self.net(points)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Report(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        keys = [k for k in ("loss", "eval_loss", "eval_accuracy") if k in logs]
        if keys:
            print(f"step {state.global_step}", *(f"{k} {float(logs[k]):.4f}" for k in keys))


def accuracy(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    set_seed(SEED)
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out, num_train_epochs=10, per_device_train_batch_size=64,
            per_device_eval_batch_size=1000, learning_rate=5e-3, weight_decay=1e-4,
            lr_scheduler_type="cosine", eval_strategy="epoch", logging_strategy="epoch",
            save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, seed=SEED,
        )
        trainer = Trainer(model=RingNet(), args=args, train_dataset=Rings(5000, 1),
                          eval_dataset=Rings(3000, 2), compute_metrics=accuracy,
                          callbacks=[Report()])
        trainer.pop_callback(__import__("transformers").PrinterCallback)
        trainer.train()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
