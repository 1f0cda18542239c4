import os
import tempfile

os.environ.setdefault("WANDB_DISABLED", "true")

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from data import InstructionSet, build_tokenizer, make_pairs


def main():
    set_seed(13)
    tok = build_tokenizer()
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(tok), n_positions=32, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=tok.eos_token_id, eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id))
    train_ds, eval_ds = (InstructionSet(pairs, tok) for pairs in make_pairs(seed=1))

    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            num_train_epochs=4,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            learning_rate=2e-3,
            lr_scheduler_type="cosine",
            warmup_steps=5,
            weight_decay=0.01,
            logging_steps=8,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            use_cpu=not torch.cuda.is_available(),
            disable_tqdm=True,
            seed=13,
        )
        trainer = Trainer(model=model, args=args, train_dataset=train_ds, eval_dataset=eval_ds)
        trainer.train()

    model.eval()
    prompt = tok("Question : what is four plus three ? Answer :", return_tensors="pt").to(model.device)
    with torch.no_grad():
        out = model.generate(input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"],
                             max_new_tokens=2, do_sample=False, pad_token_id=tok.pad_token_id)
    print(tok.decode(out[0]))


if __name__ == "__main__":
    main()
