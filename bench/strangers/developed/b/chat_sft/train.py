import random

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup, set_seed

from collator import CompletionOnlyCollator
from tokenizer import WordTokenizer

TEMPLATE = "### Instruction: {q} ### Response: {a}"
NUMBERS = "zero one two three four five six seven eight nine".split()


def conversations(n, seed):
    r = random.Random(seed)
    out = []
    for _ in range(n):
        a, b = r.randrange(5), r.randrange(5)
        out.append(TEMPLATE.format(q=f"add {NUMBERS[a]} and {NUMBERS[b]} please", a=f"the sum is {NUMBERS[a + b]}"))
    return out


def run(epochs=3, batch=16, lr=3e-3, max_len=32):
    set_seed(40)
    texts = conversations(320, 1)
    held = conversations(64, 2)
    tok = WordTokenizer(texts)
    encode = lambda ts: [(tok.encode(t) + [tok.eos_token_id])[:max_len] for t in ts]
    collate = CompletionOnlyCollator("### Response:", tok)
    train = DataLoader(encode(texts), batch, shuffle=True, collate_fn=collate)
    valid = DataLoader(encode(held), batch, collate_fn=collate)

    net = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(tok), n_positions=max_len, n_embd=48, n_layer=2, n_head=4,
        bos_token_id=tok.bos_token_id, eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id,
    ))
    opt = torch.optim.AdamW(net.parameters(), lr=lr)
    sched = get_linear_schedule_with_warmup(opt, 10, epochs * len(train))
    for ep in range(epochs):
        net.train()
        for step, b in enumerate(train):
            loss = net(**b).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            if step % 10 == 0:
                print(f"epoch {ep} step {step} loss {loss.item():.4f}")
        net.eval()
        with torch.no_grad():
            vl = sum(net(**b).loss.item() for b in valid) / len(valid)
        print(f"epoch {ep} valid loss {vl:.4f}")


if __name__ == "__main__":
    run()
