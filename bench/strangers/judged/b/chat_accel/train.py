"""Instruction tuning of a small Llama with Accelerate. Only the assistant's reply should be learned."""
import argparse
import random

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import (DataCollatorForLanguageModeling, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast,
                          get_cosine_schedule_with_warmup)

CAPITALS = {"france": "paris", "italy": "rome", "spain": "madrid", "japan": "tokyo", "peru": "lima", "egypt": "cairo",
            "norway": "oslo", "cuba": "havana", "greece": "athens", "kenya": "nairobi"}
OPENERS = ["please tell me", "hello , do you know", "quick question :", "my friend asked me", "for my homework i need"]
SPECIAL = ["<pad>", "<unk>", "<user>", "<bot>", "<end>"]


def tokenizer_for(texts):
    vocab = SPECIAL + sorted({w for t in texts for w in t.split()} - set(SPECIAL))
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocab)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", eos_token="<end>")


def dialogues(rng, held=10):
    """All (opener, country) combinations; a few of them are kept for the exact-match check."""
    pairs = [(f"<user> {o} the capital of {c} <bot>", f"it is {CAPITALS[c]} <end>") for o in OPENERS for c in CAPITALS]
    rng.shuffle(pairs)
    return pairs[held:] * 8, pairs[:held]


def encode(pair, tok, length):
    prompt, reply = (tok(s, add_special_tokens=False)["input_ids"] for s in pair)
    ids = (prompt + reply)[:length]
    gap = length - len(ids)
    return {"input_ids": ids + [tok.pad_token_id] * gap,
            "attention_mask": [1] * len(ids) + [0] * gap,
            "labels": ([-100] * len(prompt) + reply)[:length] + [-100] * gap}


@torch.no_grad()
def exact(model, tok, pairs, accelerator):
    model.eval()
    net, hit = accelerator.unwrap_model(model), 0
    for prompt, reply in pairs:
        ids = torch.tensor([tok(prompt, add_special_tokens=False)["input_ids"]], device=accelerator.device)
        out = net.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, do_sample=False,
                           pad_token_id=tok.pad_token_id, eos_token_id=tok.eos_token_id)
        hit += tok.decode(out[0, ids.shape[1]:]).strip() == reply
    return hit / len(pairs)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--accumulate", type=int, default=2)
    a = ap.parse_args()
    set_seed(31)
    accelerator = Accelerator(gradient_accumulation_steps=a.accumulate, cpu=not torch.cuda.is_available())
    train, dev = dialogues(random.Random(1))
    tok = tokenizer_for([" ".join(p) for p in train])
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tok), hidden_size=48, intermediate_size=96, num_hidden_layers=2,
                                         num_attention_heads=4, max_position_embeddings=32, pad_token_id=tok.pad_token_id,
                                         bos_token_id=tok.eos_token_id, eos_token_id=tok.eos_token_id))
    collator = DataCollatorForLanguageModeling(tokenizer=tok, mlm=False)
    loader = DataLoader([encode(p, tok, 20) for p in train], batch_size=16, shuffle=True, collate_fn=collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=0.0)
    updates = a.epochs * len(loader) // a.accumulate
    schedule = get_cosine_schedule_with_warmup(optimizer, max(1, updates // 10), updates)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    for epoch in range(a.epochs):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f} exact match {exact(model, tok, dev, accelerator):.2f}")


if __name__ == "__main__":
    main()
