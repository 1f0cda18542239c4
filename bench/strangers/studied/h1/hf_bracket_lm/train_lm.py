"""Small GPT-2 on bracket sequences with the Hugging Face Trainer."""
import random
import warnings

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

warnings.filterwarnings("ignore")
PAIRS = {"(": ")", "[": "]", "{": "}"}
VOCAB = ["<pad>", "<bos>", "<eos>"] + list("()[]{}")
IDS = {t: i for i, t in enumerate(VOCAB)}
BLOCK = 24


def balanced(rng, budget):
    out, stack = [], []
    while len(out) + len(stack) < budget:
        if stack and rng.random() < 0.45:
            out.append(PAIRS[stack.pop()])
        else:
            stack.append(rng.choice("([{"))
            out.append(stack[-1])
    while stack:
        out.append(PAIRS[stack.pop()])
    return out


class Brackets(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(size):
            toks = ["<bos>"] + balanced(rng, rng.randint(6, BLOCK - 3))[: BLOCK - 2] + ["<eos>"]
            self.rows.append([IDS[t] for t in toks])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    ids = torch.zeros(len(rows), BLOCK, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, row in enumerate(rows):
        ids[r, : len(row)] = torch.tensor(row)
        mask[r, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


class PrintEval(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics=None, **kw):
        print(f"step {state.global_step}: eval_loss {metrics['eval_loss']:.4f}")


def build_model():
    # only 200 sequences, so regularise strongly
    config = GPT2Config(vocab_size=len(VOCAB), n_positions=BLOCK, n_embd=48, n_layer=2, n_head=4,
                        dropout=0.35, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    return GPT2LMHeadModel(config)


def main():
    set_seed(0)
    args = TrainingArguments(
        output_dir="/tmp/brackets", per_device_train_batch_size=25, per_device_eval_batch_size=100,
        num_train_epochs=6, learning_rate=3e-3, lr_scheduler_type="cosine", warmup_steps=10,
        eval_strategy="epoch", save_strategy="no", report_to="none", disable_tqdm=True,
        logging_strategy="no", use_cpu=True, remove_unused_columns=False)
    trainer = Trainer(model=build_model(), args=args, train_dataset=Brackets(200, 0),
                      eval_dataset=Brackets(200, 1), data_collator=collate, callbacks=[PrintEval()])
    result = trainer.train()
    print(f"train loss {result.training_loss:.4f}")


if __name__ == "__main__":
    main()
