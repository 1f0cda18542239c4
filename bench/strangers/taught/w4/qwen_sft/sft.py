"""Full fine-tuning of a 0.5B model on our Q&A pairs, one 24 GB card.

python sft.py --data qa_pairs.jsonl --out runs/qa
"""
import argparse
import json
import math

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, get_cosine_schedule_with_warmup


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="Qwen/Qwen2.5-0.5B-Instruct")
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--lr", type=float, default=5e-6)
    p.add_argument("--bs", type=int, default=4)
    p.add_argument("--accum", type=int, default=8)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--max-len", type=int, default=1024)
    return p.parse_args()


def encode(tok, row, max_len):
    user = [{"role": "user", "content": row["question"]}]
    prompt = tok.apply_chat_template(user, add_generation_prompt=True, tokenize=False)
    prompt_ids = tok(prompt, add_special_tokens=False)["input_ids"]
    answer_ids = tok(row["answer"] + tok.eos_token, add_special_tokens=False)["input_ids"]
    ids = (prompt_ids + answer_ids)[:max_len]
    labels = ([-100] * len(prompt_ids) + answer_ids)[:max_len]
    return ids, labels


def collate(batch, pad):
    w = max(len(i) for i, _ in batch)
    ids = torch.tensor([i + [pad] * (w - len(i)) for i, _ in batch])
    lab = torch.tensor([l + [-100] * (w - len(l)) for _, l in batch])
    att = torch.tensor([[1] * len(i) + [0] * (w - len(i)) for i, _ in batch])
    return {"input_ids": ids, "attention_mask": att, "labels": lab}


def main():
    a = parse()
    torch.manual_seed(0)
    tok = AutoTokenizer.from_pretrained(a.model)
    model = AutoModelForCausalLM.from_pretrained(a.model, torch_dtype=torch.bfloat16, attn_implementation="sdpa")
    model.to("cuda")
    model.gradient_checkpointing_enable()
    model.config.use_cache = False

    rows = [json.loads(l) for l in open(a.data)]
    examples = [encode(tok, r, a.max_len) for r in rows]
    cut = int(0.95 * len(examples))
    mk = lambda part, sh: DataLoader(part, a.bs, shuffle=sh, drop_last=sh, collate_fn=lambda b: collate(b, tok.pad_token_id))
    train, dev = mk(examples[:cut], True), mk(examples[cut:], False)

    updates = a.epochs * (len(train) // a.accum)
    opt = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.0)
    sched = get_cosine_schedule_with_warmup(opt, int(0.03 * updates), updates)

    for epoch in range(a.epochs):
        model.train()
        for i, batch in enumerate(train):
            batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}
            loss = model(**batch).loss / a.accum
            loss.backward()
            if (i + 1) % a.accum == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad(set_to_none=True)
                if ((i + 1) // a.accum) % 20 == 0:
                    print(f"epoch {epoch} update {(i + 1) // a.accum} loss {loss.item() * a.accum:.4f}")
        opt.zero_grad(set_to_none=True)

        model.eval()
        tot = 0.0
        with torch.no_grad():
            for batch in dev:
                tot += model(**{k: v.to("cuda") for k, v in batch.items()}).loss.item()
        print(f"== epoch {epoch} dev ppl {math.exp(tot / len(dev)):.3f}")
        model.save_pretrained(a.out)
        tok.save_pretrained(a.out)


if __name__ == "__main__":
    main()
