import random

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

ALPHA = "abcdefghijklmnopqrstuvwxyz :>"
EOS = len(ALPHA)
PAD = EOS  # like GPT-2, there is no separate pad token
stoi = {c: i for i, c in enumerate(ALPHA)}
IGNORE = -100


def enc(s):
    return [stoi[c] for c in s]


def make(n, seed):
    r = random.Random(seed)
    rows = []
    for _ in range(n):
        word = "".join(r.choice("abcdefgh") for _ in range(r.randint(2, 5)))
        task = r.choice(["copy", "first"])
        rows.append((f"{task}: {word} >", word if task == "copy" else word[0]))
    return rows


def collate(rows):
    ids, labels, mask = [], [], []
    width = max(len(p) + len(a) + 1 for p, a in rows)
    for p, a in rows:
        prompt, answer = enc(p), enc(a) + [EOS]
        n_pad = width - len(prompt) - len(answer)
        ids.append(prompt + answer + [PAD] * n_pad)
        labels.append([IGNORE] * len(prompt) + answer + [IGNORE] * n_pad)
        mask.append([1] * (len(prompt) + len(answer)) + [0] * n_pad)
    return {"input_ids": torch.tensor(ids), "labels": torch.tensor(labels), "attention_mask": torch.tensor(mask)}


@torch.no_grad()
def generate(model, prompt, limit=8):
    model.eval()
    ids = enc(prompt)
    n = len(ids)
    for _ in range(limit):
        nxt = model(input_ids=torch.tensor([ids])).logits[0, -1].argmax().item()
        if nxt == EOS:
            break
        ids.append(nxt)
    return "".join(ALPHA[i] for i in ids[n:])


def main():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(ALPHA) + 1, n_positions=32, n_embd=64, n_layer=2, n_head=4,
                                       bos_token_id=EOS, eos_token_id=EOS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    loader = DataLoader(make(2500, 0), batch_size=32, shuffle=True, collate_fn=collate)
    held = make(60, 1)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, total_iters=4 * len(loader))
    for epoch in range(4):
        model.train()
        tot = 0.0
        for batch in loader:
            loss = model(**batch).loss
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            tot += loss.item()
        ok = sum(generate(model, p) == a for p, a in held) / len(held)
        print(f"epoch {epoch} loss {tot / len(loader):.3f} exact {ok:.2f}")
    print(held[0][0], "->", generate(model, held[0][0]))


if __name__ == "__main__":
    main()
