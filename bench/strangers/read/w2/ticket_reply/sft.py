"""Reply generation with the HF Trainer: prompt masked in the data set, padded by our own collator,
token-weighted loss, own optimizer and schedule."""
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from transformers import (GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments,
                          get_cosine_schedule_with_warmup, set_seed)

WORDS = ["<pad>", "<end>", "<reply>"] + (
    "my parcel card password is late lost broken please help we will send a new one check the reset refund sorry "
    "code wait two days it").split()
ID = {w: i for i, w in enumerate(WORDS)}
PAD, END = ID["<pad>"], ID["<end>"]
CASES = [
    ("parcel", "late", "sorry wait two days"), ("parcel", "lost", "we will send a new one"),
    ("card", "broken", "we will send a new card"), ("card", "lost", "sorry check the refund code"),
    ("password", "lost", "check the reset code"), ("parcel", "broken", "we will refund it"),
]


def make(n, rng):
    rows = []
    for _ in range(n):
        noun, state, reply = rng.choice(CASES)
        lead = rng.choices(["please", "help", "my", "it"], k=rng.randint(0, 6))
        prompt = lead + ["my", noun, "is", state] + rng.choices(["please", "help"], k=rng.randint(0, 3)) + ["<reply>"]
        p, a = [ID[w] for w in prompt], [ID[w] for w in reply.split()] + [END]
        rows.append({"input_ids": p + a, "labels": [-100] * len(p) + a})
    return rows


@dataclass
class PadRight:
    pad_id: int

    def __call__(self, rows):
        width = max(len(r["input_ids"]) for r in rows)
        out = {"input_ids": [], "attention_mask": [], "labels": []}
        for r in rows:
            n, gap = len(r["input_ids"]), width - len(r["input_ids"])
            out["input_ids"].append(r["input_ids"] + [self.pad_id] * gap)
            out["attention_mask"].append([1] * n + [0] * gap)
            out["labels"].append(r["labels"] + [-100] * gap)
        return {k: torch.tensor(v) for k, v in out.items()}


class ReplyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        out = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        logits, gold = out.logits[:, :-1], labels[:, 1:]
        total = F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=-100, reduction="sum")
        count = (gold != -100).sum() if num_items_in_batch is None else num_items_in_batch
        loss = total / count
        return (loss, {"logits": out.logits}) if return_outputs else loss


def main():
    set_seed(4)
    rng = random.Random(4)
    train, held = make(480, rng), make(96, rng)
    seen = {tuple(r["input_ids"]) for r in train}
    held = [r for r in held if tuple(r["input_ids"]) not in seen]

    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(WORDS), n_positions=32, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=END, eos_token_id=END, pad_token_id=PAD))
    args = TrainingArguments(
        output_dir="/tmp/w2_ticket_reply", num_train_epochs=10, per_device_train_batch_size=16,
        gradient_accumulation_steps=2, per_device_eval_batch_size=32, max_grad_norm=1.0, logging_steps=15,
        eval_strategy="epoch", save_strategy="no", report_to=[], remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(), disable_tqdm=True, seed=4)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    updates = 10 * len(train) // 32
    trainer = ReplyTrainer(
        model=model, args=args, train_dataset=train, eval_dataset=held, data_collator=PadRight(PAD),
        optimizers=(opt, get_cosine_schedule_with_warmup(opt, 6, updates)))
    trainer.train()

    model.eval()
    ids = torch.tensor([[ID[w] for w in "my card is broken please <reply>".split()]])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
    print(" ".join(WORDS[i] for i in out[0].tolist()))


if __name__ == "__main__":
    main()
