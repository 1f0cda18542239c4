"""Fine-tune GPT-2 medium on our support tickets; reports next-token accuracy next to the loss."""
import numpy as np
from datasets import load_dataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    set_seed,
)

MODEL = "gpt2-medium"
BLOCK = 1024

set_seed(42)
tok = AutoTokenizer.from_pretrained(MODEL)
tok.pad_token = tok.eos_token

raw = load_dataset("json", data_files={"train": "tickets/train.jsonl", "validation": "tickets/dev.jsonl"})


def tokenize(batch):
    return tok([t + tok.eos_token for t in batch["text"]])


def group(batch):
    joined = {k: sum(batch[k], []) for k in batch.keys()}
    n = (len(joined["input_ids"]) // BLOCK) * BLOCK
    return {k: [v[i:i + BLOCK] for i in range(0, n, BLOCK)] for k, v in joined.items()}


ds = raw.map(tokenize, batched=True, remove_columns=raw["train"].column_names)
ds = ds.map(group, batched=True)


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    preds = np.argmax(logits, axis=-1)[:, :-1]
    labels = labels[:, 1:]
    keep = labels != -100
    return {"token_accuracy": float((preds[keep] == labels[keep]).mean())}


model = AutoModelForCausalLM.from_pretrained(MODEL)
model.config.use_cache = False

args = TrainingArguments(
    output_dir="out/gpt2m-tickets",
    per_device_train_batch_size=4,
    per_device_eval_batch_size=4,
    gradient_accumulation_steps=8,
    gradient_checkpointing=True,
    learning_rate=5e-5,
    lr_scheduler_type="cosine",
    warmup_ratio=0.03,
    num_train_epochs=3,
    bf16=True,
    eval_strategy="steps",
    eval_steps=200,
    save_strategy="steps",
    save_steps=200,
    save_total_limit=2,
    load_best_model_at_end=True,
    metric_for_best_model="eval_loss",
    greater_is_better=False,
    logging_steps=20,
    report_to="none",
    seed=42,
)

trainer = Trainer(
    model=model,
    args=args,
    train_dataset=ds["train"],
    eval_dataset=ds["validation"],   # about 3k blocks
    data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
    compute_metrics=compute_metrics,
)

if __name__ == "__main__":
    trainer.train()
    trainer.save_model("out/gpt2m-tickets/final")
    print(trainer.evaluate())
