"""Teach a small model to write recipes from a list of ingredients; only the recipe should be learned."""
import torch
from torch.utils.data import Dataset
from transformers import (AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer,
                          TrainingArguments, set_seed)

import pandas as pd

MODEL = "distilgpt2"
MAX_LEN = 512
PROMPT = "Below is a list of ingredients. Write a recipe that uses them.\n\nIngredients: {ingredients}\n\nRecipe:"


class RecipeDataset(Dataset):
    def __init__(self, frame, tokenizer):
        self.rows = frame.reset_index(drop=True)
        self.tok = tokenizer

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows.iloc[i]
        prompt = self.tok(PROMPT.format(ingredients=row.ingredients))["input_ids"]
        answer = self.tok(" " + row.directions)["input_ids"] + [self.tok.eos_token_id]
        input_ids = (prompt + answer)[:MAX_LEN]
        labels = ([-100] * len(prompt) + answer)[:MAX_LEN]
        pad = MAX_LEN - len(input_ids)
        return {
            "input_ids": input_ids + [self.tok.pad_token_id] * pad,
            "attention_mask": [1] * len(input_ids) + [0] * pad,
            "labels": labels + [-100] * pad,
        }


def load(path):
    df = pd.read_csv(path).dropna(subset=["ingredients", "directions"])
    df = df[df.directions.str.len() > 80]
    n_val = min(2000, len(df) // 20)
    df = df.sample(frac=1.0, random_state=0)
    return df.iloc[n_val:], df.iloc[:n_val]


def sample(model, tok, ingredients):
    model.eval()
    enc = tok(PROMPT.format(ingredients=ingredients), return_tensors="pt").to(model.device)
    with torch.no_grad():
        out = model.generate(**enc, max_new_tokens=200, do_sample=True, top_p=0.9, pad_token_id=tok.pad_token_id)
    return tok.decode(out[0, enc["input_ids"].size(1):], skip_special_tokens=True)


def main():
    set_seed(0)
    tok = AutoTokenizer.from_pretrained(MODEL)
    tok.add_special_tokens({"pad_token": "<|pad|>"})
    model = AutoModelForCausalLM.from_pretrained(MODEL)
    model.resize_token_embeddings(len(tok))
    model.config.pad_token_id = tok.pad_token_id

    train_df, val_df = load("recipes_raw.csv")
    collator = DataCollatorForLanguageModeling(tok, mlm=False)
    args = TrainingArguments(
        output_dir="recipes",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        learning_rate=5e-5,
        num_train_epochs=2,
        warmup_steps=200,
        weight_decay=0.01,
        logging_steps=50,
        eval_strategy="steps",
        eval_steps=1000,
        save_steps=1000,
        save_total_limit=2,
        fp16=torch.cuda.is_available(),
        report_to="none",
    )
    trainer = Trainer(model=model, args=args, train_dataset=RecipeDataset(train_df, tok),
                      eval_dataset=RecipeDataset(val_df, tok), data_collator=collator)
    trainer.train()
    print(sample(trainer.model, tok, "eggs, flour, milk, butter, sugar"))
    trainer.save_model("recipes/final")
    tok.save_pretrained("recipes/final")


if __name__ == "__main__":
    main()
