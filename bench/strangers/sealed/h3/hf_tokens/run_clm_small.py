"""Train a tiny causal LM from scratch on synthetic 'recipes' with the HF Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

VOCAB, SEQ = 1500, 32


class RecipeDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        nxt = np.random.default_rng(0).integers(0, VOCAB, (VOCAB, 2))
        seqs = np.empty((n, SEQ), dtype=np.int64)
        seqs[:, 0] = rng.integers(0, 20, n)
        for t in range(1, SEQ):
            seqs[:, t] = nxt[seqs[:, t - 1], (rng.random(n) < 0.1).astype(int)] % 60
        self.seqs = torch.from_numpy(seqs)

    def __len__(self):
        return len(self.seqs)

    def __getitem__(self, i):
        return {"input_ids": self.seqs[i], "labels": self.seqs[i]}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    guesses = logits.argmax(-1)[:, :-1]
    truth = labels[:, 1:]
    return {"next_token_accuracy": float((guesses == truth).mean())}


def main():
    set_seed(1)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=SEQ, n_embd=32, n_layer=1, n_head=2,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config)
    args = TrainingArguments(
        output_dir="out",
        max_steps=60,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        learning_rate=2e-2,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        eval_strategy="steps",
        eval_steps=30,
        logging_steps=15,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=RecipeDataset(600, seed=2),
        eval_dataset=RecipeDataset(160, seed=3),
        compute_metrics=compute_metrics,
    )
    trainer.train()
    final = trainer.evaluate()
    print({k: round(v, 4) for k, v in final.items() if k in ("eval_loss", "eval_next_token_accuracy")})


if __name__ == "__main__":
    main()
