import json
import sys

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

from collate import PadCollator, tokenize_row
from prompts import RESPONSE_KEY, render

BASE = "LeoLM/leo-hessianai-7b"


def main(path):
    tok = AutoTokenizer.from_pretrained(BASE)
    tok.pad_token = tok.unk_token
    model = AutoModelForCausalLM.from_pretrained(BASE, torch_dtype=torch.bfloat16, device_map="auto")
    model.config.use_cache = False
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model = get_peft_model(model, LoraConfig(
        r=16, lora_alpha=32, lora_dropout=0.05, task_type="CAUSAL_LM",
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    model.print_trainable_parameters()

    rows = [json.loads(l) for l in open(path, encoding="utf8")]
    ds = Dataset.from_list(rows)
    ds = ds.map(lambda r: tokenize_row(render(r), tok, RESPONSE_KEY, 1024), remove_columns=ds.column_names)
    parts = ds.train_test_split(test_size=0.05, seed=42)

    args = TrainingArguments(
        output_dir="support-lora", per_device_train_batch_size=4, gradient_accumulation_steps=8,
        learning_rate=2e-4, num_train_epochs=3, lr_scheduler_type="cosine", warmup_ratio=0.03, bf16=True,
        logging_steps=10, eval_strategy="epoch", save_strategy="epoch", remove_unused_columns=False, report_to="none")
    trainer = Trainer(model=model, args=args, train_dataset=parts["train"], eval_dataset=parts["test"],
                      data_collator=PadCollator(tok.pad_token_id))
    trainer.train()
    model.save_pretrained("support-lora/final")


if __name__ == "__main__":
    main(sys.argv[1])
