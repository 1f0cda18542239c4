"""Fine-tune GPT-2 medium to write recipes from a list of ingredients (single 24 GB GPU)."""
from functools import partial

from datasets import load_dataset
from transformers import (AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments,
                          default_data_collator, set_seed)

MODEL = "gpt2-medium"
MAX_LEN = 512


def format_example(ex):
    ingredients = "\n".join(f"- {i}" for i in ex["ingredients"])
    return f"### Ingredients\n{ingredients}\n### Recipe: {ex['title']}\n{ex['directions'].strip()}"


def encode(batch, tok):
    rows = [dict(zip(batch, vals)) for vals in zip(*batch.values())]
    texts = [format_example(r) + tok.eos_token for r in rows]
    out = tok(texts, truncation=True, max_length=MAX_LEN, padding="max_length")
    out["labels"] = [ids.copy() for ids in out["input_ids"]]
    return out


def main():
    set_seed(77)
    tok = AutoTokenizer.from_pretrained(MODEL)
    tok.add_special_tokens({"pad_token": "<|pad|>"})
    model = AutoModelForCausalLM.from_pretrained(MODEL)
    model.resize_token_embeddings(len(tok))
    model.config.pad_token_id = tok.pad_token_id

    raw = load_dataset("json", data_files={"train": "recipes_train.jsonl", "validation": "recipes_val.jsonl"})
    data = raw.map(partial(encode, tok=tok), batched=True, remove_columns=raw["train"].column_names)

    args = TrainingArguments(
        output_dir="out/recipes",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=4,
        learning_rate=5e-5,
        lr_scheduler_type="cosine",
        warmup_ratio=0.03,
        num_train_epochs=3,
        eval_strategy="steps",
        eval_steps=200,
        save_steps=200,
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        bf16=True,
        logging_steps=20,
        report_to="none",
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        data_collator=default_data_collator,
    )
    trainer.train()
    trainer.save_model("out/recipes/final")
    tok.save_pretrained("out/recipes/final")


if __name__ == "__main__":
    main()
